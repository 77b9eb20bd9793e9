// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/overlap.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/demands.hpp"
#include "base/locked.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/scheduler.hpp"
#include "mpi/host/windows.hpp"
#include "mpi/job/connections.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/kept_times.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/remote_reads.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/deferring.hpp"
#include "mpi/overlap/speed_probe.hpp"
#include "overlap/deferred_calls.hpp"
#include "sys/sys.hpp"
#include "transport/pass.hpp"

namespace stretto::mpi {
namespace {

// ---- The process's calls ----

alignas(overlap::DeferredCalls) constinit unsigned char g_memory[sizeof(overlap::DeferredCalls)] = {};
constinit std::atomic<overlap::DeferredCalls*> g_driver = nullptr;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // while it opens
// What the process knows of its connections beside the MPI's.
enum class Speed : std::uint8_t { unknown, fine, slow };
constinit std::atomic<Speed> g_speed = Speed::unknown;

overlap::DeferredCalls* driver() { return g_driver.load(std::memory_order_acquire); }

void before_fork() {
  if (overlap::DeferredCalls* const all = driver()) all->complete_before_fork();
}
void in_child() { g_driver.store(nullptr, std::memory_order_relaxed); }  // its thread is not there

overlap::DeferredCalls::Settings settings_here() {
  shm::DeferredNotes* const notes = engine::process_deferred(process(), job()->hosts);
  process_count_in_segment();
  overlap::DeferredCalls::Settings settings;
  constexpr sys::FaultMode kModes[] = {sys::FaultMode::kernel, sys::FaultMode::user, sys::FaultMode::signal};
  settings.most = kModes[static_cast<int>(options().overlap_guard())];
  settings.least_bytes = std::min<std::uint64_t>(job()->overlap_bytes, kTuning.overlap_least_guarded);
  settings.notes = notes;
  return settings;
}

// Once, where this process can be reached.
void open_driver() {
  const Locked locked(g_lock);
  if (driver() != nullptr || connections() == nullptr) return;
  auto* const made = new (g_memory) overlap::DeferredCalls(*connections());
  made->open(settings_here());
  pthread_atfork(before_fork, nullptr, in_child);
  g_driver.store(made, std::memory_order_release);
}

// Who has made a call fail.
struct Culprit {
  char text[400];
  Culprit(Status status, const transport::Lost& lost) {
    if (lost.rank >= 0 && job() != nullptr)
      std::snprintf(text, sizeof text, "rank %d on %s has died, or the connection to it is gone", lost.rank,
                    job()->hosts.of(lost.rank));
    else
      std::snprintf(text, sizeof text, "a peer failed (status %d)", static_cast<int>(status));
  }
};

// A call has failed on this rank after it returned: nobody can raise an error any more.
void fail_late(void* communicator, const char* name, Status status, const transport::Lost& lost) {
  const auto size = static_cast<int>(reinterpret_cast<std::uintptr_t>(communicator));
  log_line(LogLevel::error,
           "STRETTO_OVERLAP: MPI_%s on %d ranks returned early, and data were still to come: %s. This process ends, "
           "and with it the job",
           name, size, Culprit(status, lost).text);
  log_end_process();
}

const char* why_no_guard(int error) {
  const overlap::Refusal known = overlap::refusal_of(error);
  return known == overlap::Refusal::handled ? overlap::text_of(known) : strerrordesc_np(error);
}

// ---- What the members agree on ----

struct Word : ConnectionWord {
  bool guards;
  Speed speed;
};

// What is measured. Another network is another matter.
struct LongMessages {
  char text[64];
  LongMessages() {
    const char* const provider = remote_reads_provider();
    std::snprintf(text, sizeof text, "long messages%s%s", *provider != 0 ? " by " : "", provider);
  }
};

}  // namespace

Overlap::~Overlap() {
  if (stage_ == Stage::open && driver() != nullptr) driver()->forget(id_, policy_);
}

void Overlap::start(State& state, const int* job_ranks, const std::int32_t* nodes, const transport::Transport& next,
                    const shm::WaitPolicy& policy) {
  stage_ = Stage::unasked;
  state_ = &state;
  job_ranks_ = job_ranks;
  nodes_ = nodes;
  next_ = next;
  policy_ = policy;
  const auto size = static_cast<std::size_t>(state.size);
  if (!ring_.resize(size, 0) || !ring_jobs_.resize(size, 0)) std::abort();  // a few words a rank: all members need them
  for (int r = 0; r < state.size; ++r) ring_[r] = r;
  std::sort(ring_.begin(), ring_.end(), [&](int a, int b) {
    const std::int32_t one = nodes[job_ranks[a]], other = nodes[job_ranks[b]];
    return one != other ? one < other : a < b;
  });
  for (int i = 0; i < state.size; ++i) ring_jobs_[i] = job_ranks[ring_[i]];
}

Bootstrap Overlap::members() const { return {state_->rank, state_->size, &state_->handle, allgather_bytes}; }

bool Overlap::may_defer(bool staged) const {
  return !staged && state_->check != 3 && !g_windows.load(std::memory_order_relaxed);
}

engine::Outcome Overlap::run(overlap::Exchange& call, std::uint64_t bytes) {
  call.comm = id_;
  call.call = calls_++;
  call.communicator = state_->serial;
  call.ranks = static_cast<std::uint32_t>(state_->size);
  const bool is_long = bytes >= job()->overlap_bytes;
  call.may_return_early = call.may_return_early && is_long;
  call.on_failure = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(state_->size)), fail_late};
  char place[sizeof shm::DeferredCall::place] = "";
  engine::process_place(process(), place, sizeof place);
  call.place = place;
  const overlap::DeferredCalls::Result result = driver()->run(call, policy_);
  if (result.early) g_deferring.store(true, std::memory_order_relaxed);
  if (result.lost.rank >= 0)
    log_line(LogLevel::error, "communicator of %d ranks: %s; rank %d of the job waits for others in MPI_%s",
             state_->size, Culprit(result.status, result.lost).text, job_ranks_[state_->rank], call.name);
  if (is_long && !call.receives.empty()) judge(result.early, result.refused);
  const std::uint32_t why = std::uint32_t{1} << static_cast<int>(result.refused);  // `none` also if it came too late
  if (options().explain() && is_long && (told_ & why) == 0 &&
      (result.early || result.refused != overlap::Refusal::none)) {
    constexpr const char* kGuarded[] = {"", "by SIGSEGV", "in user mode", "by kernel faults"};  // by FaultMode
    told_ |= why;
    if (result.early)
      log_explain("overlap: MPI_%s of %llu bytes has returned before its data are there; buffers are guarded %s",
                  call.name, static_cast<unsigned long long>(bytes), kGuarded[static_cast<int>(driver()->mode())]);
    else
      log_explain("overlap: MPI_%s of %llu bytes waits for all its data: %s", call.name,
                  static_cast<unsigned long long>(bytes), overlap::text_of(result.refused));
  }
  return {result.status, result.early ? Path::deferred : Path::schedule, bytes};
}

// A demand is refused if this rank's first calls, of those that might, all wait for their data.
void Overlap::judge(bool early, overlap::Refusal refused) {
  constexpr std::uint32_t kEnough = 4;
  if (early) refused_ = kEnough;
  if (refused == overlap::Refusal::none || refused_ >= kEnough || ++refused_ != kEnough) return;
  const bool windows = refused == overlap::Refusal::unsuitable && g_windows.load(std::memory_order_relaxed);
  demand_refused(Option::overlap, state_->size, windows ? "the program has windows of MPI" : overlap::text_of(refused));
}

// Peers hear that this rank gives up.
engine::Outcome Overlap::give_up() {
  for (int r = 0; r < state_->size; ++r) {
    if (r != state_->rank) driver()->abandon(job_ranks_[r], id_);
  }
  return engine::outcome_of(Status::no_memory);
}

// One long message by connections of our own.
bool Overlap::pass(int peer, bool sends, char* data, std::uint64_t bytes, std::uint64_t number) {
  const overlap::MessageOut send{job_ranks_[peer], data, bytes};
  const overlap::MessageIn receive{job_ranks_[peer], {0, bytes}};
  const overlap::Block block{0, bytes};
  overlap::Exchange call;
  call.comm = id_;
  call.call = ~number;  // no collective comes so far
  call.is_measuring = true;
  call.sends = {&send, sends ? 1u : 0u};
  call.receives = {&receive, sends ? 0u : 1u};
  call.buffer = data;
  call.buffer_bytes = bytes;
  call.blocks = {&block, 1};
  return driver()->run(call, policy_).status == Status::ok;
}

// Rank 0 and the first one on another node send messages there and back, by turns. Rank 0 says how
// long the next ones are.
bool Overlap::is_fast_enough(int other) {
  const int me = state_->rank;
  const bool sends = me == 0 || me == other;
  char* const data = sends ? static_cast<char*>(std::calloc(SpeedProbe::kMostBytes, 1)) : nullptr;
  bool fine = everybody(members(), other < state_->size && (!sends || data != nullptr));
  SpeedProbe probe(sys::now_ns());
  const int peer = me == 0 ? other : 0;
  std::uint64_t number = 0;
  for (std::uint64_t bytes = SpeedProbe::kLeastBytes; fine && sends && bytes != 0;) {
    const auto there_and_back = [&](const auto& over) {
      const std::uint64_t begin = sys::now_ns();
      fine = fine && over(me == 0) && over(me != 0);
      return sys::now_ns() - begin;
    };
    KeptTimes trip;
    trip.ours_ns = there_and_back([&](bool now) { return pass(peer, now, data, bytes, number++); });
    trip.host_ns = there_and_back([&](bool now) { return transport::pass(next_, policy_, peer, now, data, bytes); });
    if (me == 0) bytes = probe.add(trip, sys::now_ns());
    fine = fine && transport::pass(next_, policy_, peer, me == 0, reinterpret_cast<char*>(&bytes), sizeof bytes);
  }
  std::free(data);
  if (me == 0 && fine) kept_times_write(LongMessages().text, job_ranks_[0], job_ranks_[other], probe.best());
  return everybody(members(), fine && (me != 0 || SpeedProbe::suffice(probe.best())));
}

int Overlap::first_elsewhere() const {
  int other = 1;
  while (other < state_->size && nodes_[job_ranks_[other]] == nodes_[job_ranks_[0]]) ++other;
  return other;
}

bool Overlap::open() {
  const std::uint64_t begin_ns = sys::now_ns();
  Word mine{connection_word(), false, g_speed.load(std::memory_order_relaxed)};
  open_driver();
  overlap::DeferredCalls* const own = driver();
  const int other = first_elsewhere();
  if (state_->rank == 0 && mine.speed == Speed::unknown && job()->overlap_measures && other < state_->size) {
    KeptTimes times;
    if (kept_times_read(LongMessages().text, job_ranks_[0], job_ranks_[other], &times))
      mine.speed = SpeedProbe::suffice(times) ? Speed::fine : Speed::slow;
  }
  mine.guards = own != nullptr && own->guard_error() == 0;
  const Array<Word> all = of_all(members(), mine);
  if (own != nullptr) own->starts(sys::now_ns());
  id_ = all[0].id;
  const bool useful = std::any_of(all.begin(), all.end(), [](const Word& word) { return word.guards; });
  if (own != nullptr && !mine.guards && options().explain())
    log_explain("overlap: no call returns early on rank %d: %s", job_ranks_[state_->rank],
                why_no_guard(own->guard_error()));
  if (!all_can_connect(all)) return decline("members cannot connect");
  if (!useful) return decline("no rank can guard its memory", why_no_guard(own->guard_error()));
  if (!mine.guards) demand_refused(Option::overlap, 0, why_no_guard(own->guard_error()));
  const bool met_all = everybody(members(), connections_introduce(all, job_ranks_));
  Speed speed = all[0].speed;  // rank 0's, which may have a file that says it
  if (met_all && job()->overlap_measures && speed == Speed::unknown)
    speed = is_fast_enough(other) ? Speed::fine : Speed::slow;
  g_speed.store(speed, std::memory_order_relaxed);
  if (!met_all) return decline("a member would have too many connections");
  if (speed == Speed::slow) return decline("the MPI moves long messages faster than connections of our own");
  if (state_->rank == 0 && options().explain())
    log_explain("overlap: collectives between nodes may return before their data are there; agreed in %.1f ms",
                static_cast<double>(sys::now_ns() - begin_ns) * 1e-6);
  return true;
}

// Returns false on all members.
bool Overlap::decline(const char* why, const char* more) const {
  char text[200];
  std::snprintf(text, sizeof text, "%s%s%s", why, *more != 0 ? ": " : "", more);
  if (state_->rank == 0 && options().explain()) log_explain("overlap: off: %s", text);
  demand_refused(Option::overlap, state_->size, text);
  return false;
}

void overlap_each_site(void (*each)(void* context, const overlap::Sites::Site& site), void* context) {
  overlap::DeferredCalls* const all = driver();
  if (all == nullptr) return;
  all->each_site([&](const overlap::Sites::Site& site) { each(context, site); });
}

bool overlap_any_away() {
  const overlap::DeferredCalls* const all = driver();
  return all != nullptr && all->any_away();
}

std::uint64_t overlap_waited_ns() {
  overlap::DeferredCalls* const all = driver();
  return all != nullptr ? all->waited_ns() : 0;
}

void overlap_complete(const void* memory, std::uint64_t bytes) {
  overlap::DeferredCalls* const all = driver();
  if (all == nullptr || !all->any_away()) return;
  const Inside inside;
  all->complete(memory, bytes, engine::schedule_policy(process()));
}

void overlap_bring_home(const void* memory, std::uint64_t bytes) {
  if (const overlap::DeferredCalls* const all = driver()) all->bring_home(memory, bytes);
}

void overlap_complete_all() {
  overlap::DeferredCalls* const all = driver();
  if (all == nullptr) return;
  const Inside inside;
  all->complete_all(engine::schedule_policy(process()));
}

void overlap_stop() {
  overlap::DeferredCalls* const all = driver();
  if (all == nullptr) return;
  g_driver.store(nullptr, std::memory_order_release);
  all->close();
  all->~DeferredCalls();
}

}  // namespace stretto::mpi
