// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lifecycle.hpp"

#include <pthread.h>

#include <climits>

#include "base/log.hpp"
#include "base/tuning.hpp"
#include "mpi/comm/communicator.hpp"
#include "mpi/comm/process_life.hpp"
#include "mpi/data/data.hpp"
#include "mpi/host/entry.hpp"
#include "mpi/host/trial.hpp"
#include "mpi/job/attendance.hpp"
#include "mpi/job/connections.hpp"
#include "mpi/job/finalize.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/job_demands.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/record/recording.hpp"
#include "mpi/requests/persistent.hpp"
#include "mpi/requests/request_queue.hpp"
#include "mpi/stats/keeper.hpp"
#include "mpi/stats/profile.hpp"
#include "mpi/stats/stats.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waits/noted.hpp"
#include "mpi/waits/program_waits.hpp"
#include "sys/faults_signal.hpp"
#include "sys/kernel_access.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

// In a forked child only the thread that forked lives on, and locks stay as they were. So the host
// serves all MPI calls of the child. The standard does not promise that these work.
void in_child() {
  ending_is_done();
  attendance_leave_to_parent();  // it keeps the names
  record_leave_to_parent();
  if (g_mode.load(std::memory_order_relaxed) == Mode::serving) g_mode.store(Mode::aside, std::memory_order_relaxed);
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
  const int version = static_cast<int>(world_version());
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
  const bool complete =
      !node_is_known() || node_has_library(vendor::meets_in_init() ? 0 : kTuning.attendance_patience_ns);
  record_begin(complete);
  if (!complete) {
    g_world.off = g_world.agreed = true;
    g_mode.store(Mode::aside, std::memory_order_release);
    return;
  }
  if (g_world.rank == 0) job_read_rules(options(), options_report());
  const Ballot all = vote();
  attendance_end();  // every rank has its verdict: it would not have come to vote() otherwise
  if (all.error_rank != kNone) options_abort(host().constants.comm_world, all.error_rank == g_world.rank);
  if (g_world.rank == 0) options_log(options_report());
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
    // A program that only sends and receives has no communicator with a state: its process is made
    // now.
    if (g_watched) noted_begin(process_enter() ? &process() : nullptr, all.watched == 1);
  }
  if (!g_world.off && (g_world.several_nodes || all.minus_asked != 0))
    job_begin(g_world.rank, g_world.size, all.minus_tells != 0);
  if (!g_world.off && g_world.rank == 0) job_demands();
}

// ---- The end ----

// In MPI_Finalize.
void end() {
  record_end();
  if (g_mode.load(std::memory_order_relaxed) != Mode::serving) return;  // only the recording asked for this
  overlap_complete_all();
  requests_finish();
  persistent_stop();
  stats_report(g_world.agreed && g_world.same_stats);
  ending_is_done();
  waiting_end();
  g_mode.store(Mode::aside, std::memory_order_release);
  g_world.finalized = true;
  noted_end();
  communicators_stop();
  overlap_stop();
  connections_stop();
  job_end();
  trial_end();
}

// A program with sessions alone has no MPI_Finalize, so each process reports at its exit.
void end_of_process() { stats_report(false); }

}  // namespace

bool lifecycle_begin() {
  const Options& read = options_read();
  log_set_level(read.log());
  if (read.enabled()) job_read(read, options_report());
  g_watched = read.enabled() && (read.watchdog_seconds() != 0 || read.timeout_seconds() != 0);
  g_timed = read.stats() != StatsFormat::off;
  record_prepare();
  if (g_timed) profile_begin();
  const int rank = vendor::launcher_rank();
  if (rank >= 0) log_set_rank(rank);
  attendance_begin();
  ending_set({end, end_of_process});
  pthread_atfork(nullptr, nullptr, in_child);
  return true;
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
