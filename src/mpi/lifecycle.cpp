// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lifecycle.hpp"

#include <pthread.h>

#include <climits>
#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/attendance.hpp"
#include "mpi/communicator.hpp"
#include "mpi/entry.hpp"
#include "mpi/job.hpp"
#include "mpi/job_demands.hpp"
#include "mpi/keeper.hpp"
#include "mpi/nonblocking.hpp"
#include "mpi/noted.hpp"
#include "mpi/overlap.hpp"
#include "mpi/profile.hpp"
#include "mpi/request_connections.hpp"
#include "mpi/serve.hpp"
#include "mpi/stats.hpp"
#include "mpi/trial.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waiting.hpp"
#include "sys/faults_signal.hpp"
#include "sys/kernel_access.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

// Raw memory, because Options has a constructor and nothing may run before the first call.
alignas(Options) constinit unsigned char g_options[sizeof(Options)] = {};
constinit OptionsReport g_report = {};
constinit World g_world = {};
constinit std::atomic<bool> g_hooked{false};
constinit bool g_exit_report = false;
constinit vendor::Launched g_launched = {};
constinit engine::Attendance g_attendance = {};
constinit pthread_mutex_t g_attendance_lock = PTHREAD_MUTEX_INITIALIZER;

// In a forked child only the thread that forked lives on, and locks stay as they were. So the host
// serves all MPI calls of the child. The standard does not promise that these work.
void in_child() {
  g_exit_report = false;
  g_attendance.leave();  // the parent keeps the names
  if (g_mode.load(std::memory_order_relaxed) == Mode::serving) g_mode.store(Mode::aside, std::memory_order_relaxed);
}

// ---- Who has the library ----

// Warns of N processes that became N jobs of one rank. Nothing fails then, but no user wants it.
void say_if_alone() {
  if (g_world.size != 1 || g_launched.size < 2 || g_launched.rank != 0 || !options().enabled()) return;
  log_line(LogLevel::warn,
           "%d processes were started together, and each of them is an MPI job of one rank: %s does not know this "
           "launcher. Use the mpiexec of this MPI%s%s",
           g_launched.size, vendor::kFamily, g_launched.slurm ? ", or srun " : "",
           g_launched.slurm ? vendor::kSrunOption : "");
}

// Whether the launcher's variables describe MPI_COMM_WORLD, and this node has several of its ranks.
bool node_is_known() {
  return g_world.size > 1 && g_launched.job != 0 && g_launched.slots > 1 && g_launched.size == g_world.size &&
         g_launched.rank == g_world.rank;
}

// Stretto sends no message before it knows this: a rank without the library would take the
// message for the program's. Patience is for ranks that may not have come to MPI_Init yet. MPICH
// lets ranks make a communicator of a session before others have made their first MPI call. Open
// MPI can be told not to synchronise ranks in MPI_Init.
bool node_has_library(std::uint64_t patience_ns) {
  pthread_mutex_lock(&g_attendance_lock);
  const engine::Attendance::Verdict verdict = g_attendance.verdict(patience_ns);
  pthread_mutex_unlock(&g_attendance_lock);
  if (verdict.first && !verdict.all) {
    log_line(LogLevel::warn,
             "off: the library is seen in %u of %u ranks on this node; preload it into all ranks of the job, or into "
             "none",
             verdict.present, g_launched.slots);
  }
  return verdict.all;
}

// ---- The agreement of MPI_Init ----

// All ranks take the minimum of each field. So a maximum is the minimum of the negative,
// and INT_MAX means "none".
struct Ballot {
  int off_rank;    // lowest rank with STRETTO=off
  int on_rank;     // lowest rank without
  int error_rank;  // lowest rank whose options are wrong
  int version;
  int minus_version;
  int minus_check;
  int minus_reproducible;
  int agree;
  int nonblocking;
  int stats;  // StatsFormat
  int minus_stats;
  int minus_asked;  // -1: some rank asks for schedules, or for sums in rank order, or has rules for one node
  int minus_tells;  // -1: rank 0 has rules or levels for all
  int host;
  int minus_host;
  int processors;  // which of them this process may use
  int minus_processors;
  int watched;  // 0: some rank has no watchdog
  int job;      // rank 0's random number
};
constexpr int kNone = INT_MAX;

Ballot vote() {
  const int rank = g_world.rank;
  const bool off = !options().enabled();
  const int version = static_cast<int>(lifecycle_version());
  std::uint32_t job = 0;
  if (rank == 0) (void)sys::random_bytes(&job, sizeof job);
  const int machine = static_cast<int>(sys::host_id() >> 33);
  sys::Cpus cpus = {};
  sys::affinity_again(&cpus);
  const int processors = static_cast<int>(cpus.mask_hash >> 33);
  const bool in_order = options().reproducible() == ReproducibleChoice::rank;
  const bool wants_schedules = options().scheduled() != 0 || in_order || job_rules_speak_of_one_node();
  Ballot mine = {off ? rank : kNone,
                 off ? kNone : rank,
                 options_have_error() ? rank : kNone,
                 version,
                 -version,
                 -options().check(),
                 -static_cast<int>(options().reproducible()),
                 options().agree(),
                 static_cast<int>(options().nonblocking()),
                 static_cast<int>(options().stats()),
                 -static_cast<int>(options().stats()),
                 wants_schedules ? -1 : 0,
                 rank == 0 && job_has_to_tell() ? -1 : 0,
                 machine,
                 -machine,
                 processors,
                 -processors,
                 g_watched ? 1 : 0,
                 rank == 0 ? static_cast<int>(job >> 1) : kNone};
  Ballot all = mine;
  const Constants& c = host().constants;
  if (host().Allreduce(&mine, &all, sizeof mine / sizeof(int), c.int_, c.min, c.comm_world) != MPI_SUCCESS) {
    all.off_rank = all.on_rank = kNone;
  }
  return all;
}

// Rank 0 speaks for all.
void say_why_off(const Ballot& all) {
  if (g_world.rank != 0) return;
  if (all.version != -all.minus_version) {
    log_line(LogLevel::warn, "off: the ranks have loaded different versions of Stretto");
  } else if (all.on_rank != kNone && all.off_rank != kNone) {
    log_line(LogLevel::warn, "off on every rank, because rank %d has STRETTO=off", all.off_rank);
  }
}

void agree() {
  const Inside inside;
  vendor::ask_initialized_host(g_host.constants);
  host().Comm_rank(host().constants.comm_world, &g_world.rank);
  host().Comm_size(host().constants.comm_world, &g_world.size);
  log_set_rank(g_world.rank);
  say_if_alone();
  // Where the launcher tells too little, Stretto assumes that all ranks have the library. It
  // assumes the same of other nodes, whose ranks it cannot see without a message.
  if (node_is_known() && !node_has_library(vendor::meets_in_init() ? 0 : kTuning.attendance_patience_ns)) {
    g_world.off = g_world.agreed = true;
    g_mode.store(Mode::aside, std::memory_order_release);
    return;
  }
  if (g_world.rank == 0) job_read_rules(options(), g_report);
  const Ballot all = vote();
  pthread_mutex_lock(&g_attendance_lock);
  g_attendance.leave();  // every rank has its verdict: it would not have come to vote() otherwise
  pthread_mutex_unlock(&g_attendance_lock);
  if (all.error_rank != kNone) options_abort(host().constants.comm_world, all.error_rank == g_world.rank);
  if (g_world.rank == 0) options_log(g_report);
  g_world.off = all.off_rank != kNone || all.on_rank == kNone || all.version != -all.minus_version;
  g_world.check = -all.minus_check;
  g_world.reproducible = static_cast<ReproducibleChoice>(-all.minus_reproducible);
  g_world.agree = all.agree;
  g_world.nonblocking = static_cast<NonblockingChoice>(all.nonblocking);
  g_world.job = all.job;
  g_world.several_nodes = all.host != -all.minus_host;
  g_world.same_processors = all.processors == -all.minus_processors;
  g_world.same_stats = all.stats == -all.minus_stats;
  g_world.agreed = true;
  if (g_world.off) say_why_off(all);
  // Communicators of sessions may have agreed earlier. Their agreement stays valid.
  if (g_world.off && !communicators_alive()) {
    g_mode.store(Mode::aside, std::memory_order_release);
    return;
  }
  ensure_finalize_hook();
  if (!g_world.off) {
    trial_begin();
    aliases_ask_host();
  }
  if (g_world.same_stats && g_timed) {
    profile_meet();
    keeper_begin();
  }
  if (!g_world.off) {
    waiting_begin();
    noted_begin(all.watched == 1);
  }
  if (!g_world.off && (g_world.several_nodes || all.minus_asked != 0))
    job_begin(g_world.rank, g_world.size, all.minus_tells != 0);
  if (!g_world.off && g_world.rank == 0) job_demands();
}

// ---- The end ----

int never_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else, the last set first. So
// MPI still works here. The host serves all later calls.
int on_finalize(MPI_Comm, int, void*, void*) {
  const Inside inside;
  overlap_complete_all();
  nonblocking_finish();
  stats_report(g_world.agreed && g_world.same_stats);
  g_exit_report = false;
  waiting_end();
  g_mode.store(Mode::aside, std::memory_order_release);
  g_world.finalized = true;
  communicators_stop();
  overlap_stop();
  request_connections_stop();
  job_end();
  trial_end();
  return MPI_SUCCESS;
}

// A program with sessions alone has no MPI_Finalize, so each process reports at its exit.
void at_exit() {
  if (g_exit_report) stats_report(false);
}

}  // namespace

const Options& options() { return *reinterpret_cast<const Options*>(g_options); }
const World& world() { return g_world; }
bool options_have_error() { return g_report.errors != 0; }

bool session_has_library() {
  const bool all_are_here = g_launched.slots > 1 && static_cast<int>(g_launched.slots) == g_launched.size;
  return g_launched.job == 0 || !all_are_here || node_has_library(kTuning.attendance_patience_ns);
}

std::uint32_t lifecycle_version() {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char* c = STRETTO_VERSION; *c != 0; c++) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  return hash & 0x7fffffffu;
}

bool lifecycle_begin() {
  auto* const read = new (g_options) Options;
  (void)options_load(*read, g_report);  // the report keeps errors, and all ranks agree on them later
  log_set_level(read->log());
  if (read->enabled()) job_read(*read, g_report);
  g_watched = read->enabled() && (read->watchdog_seconds() != 0 || read->timeout_seconds() != 0);
  g_timed = read->stats() != StatsFormat::off;
  if (g_timed) profile_begin();
  const int rank = vendor::launcher_rank();
  if (rank >= 0) log_set_rank(rank);
  g_launched = vendor::launched();
  if (g_launched.job != 0 && g_launched.slots > 1) {
    (void)g_attendance.enter(g_launched.job, g_launched.slot, g_launched.slots);
  }
  pthread_atfork(nullptr, nullptr, in_child);
  return true;
}

void options_abort(MPI_Comm comm, bool speak) {
  if (speak) {
    options_log(g_report);
    log_drain();
    host().Abort(comm, 1);
    log_end_process();
  }
  host().Barrier(comm);  // waits until the abort of the rank that speaks ends this process
}

void ensure_finalize_hook() {
  if (g_hooked.load(std::memory_order_relaxed)) return;
  int initialized = 0;
  host().Initialized(&initialized);
  if (!initialized) {
    if (options().stats() != StatsFormat::off && !g_exit_report) {
      g_exit_report = true;
      std::atexit(at_exit);
    }
    return;
  }
  if (g_hooked.exchange(true, std::memory_order_relaxed)) return;
  int keyval = MPI_KEYVAL_INVALID;
  if (host().Comm_create_keyval(never_copy, on_finalize, &keyval, nullptr) != MPI_SUCCESS) return;
  host().Comm_set_attr(host().constants.comm_self, keyval, nullptr);
  host().Comm_free_keyval(&keyval);
}

namespace {

// With STRETTO_OVERLAP: which threads and handlers of signals are the host's.
template <class Init>
int watched(const Init& host_init) {
  const bool watches = options().overlap_bytes() != 0;
  if (watches) {
    sys::access_before_init();
    sys::signals_before_init();
  }
  const int code = host_init();
  if (watches) {
    sys::access_after_init();
    sys::signals_after_init();
  }
  if (code == MPI_SUCCESS && host_is_proven()) agree();
  return code;
}

}  // namespace

int init(int* argc, char*** argv) {
  const auto host_init = reinterpret_cast<int (*)(int*, char***)>(host_entry(Entry::init));
  return watched([&] { return host_init(argc, argv); });
}

int init_thread(int* argc, char*** argv, int required, int* provided) {
  const auto host_init = reinterpret_cast<int (*)(int*, char***, int, int*)>(host_entry(Entry::init_thread));
  return watched([&] { return host_init(argc, argv, required, provided); });
}

}  // namespace stretto::mpi
