// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/bootstrap.hpp"
#include "base/locked.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/scheduler.hpp"
#include "mpi/job.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/process.hpp"
#include "mpi/progress.hpp"
#include "overlap/driver.hpp"
#include "sys/sys.hpp"
#include "transport/pass.hpp"

namespace stretto::mpi {
namespace {

// ---- The process's driver ----

alignas(overlap::Driver) constinit unsigned char g_memory[sizeof(overlap::Driver)] = {};
constinit std::atomic<overlap::Driver*> g_driver = nullptr;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool g_tried = false;  // under the lock
constinit transport::Endpoint g_endpoint = {};
constinit std::uint32_t g_communicators = 0;
// What the process knows of its connections beside the MPI's.
enum class Speed : std::uint8_t { unknown, fine, slow };
constinit std::atomic<Speed> g_speed = Speed::unknown;

}  // namespace

constinit std::atomic<bool> g_deferring = false;

namespace {

overlap::Driver* driver() { return g_driver.load(std::memory_order_acquire); }

void before_fork() {
  if (overlap::Driver* const all = driver()) all->complete_before_fork();
}
void in_child() { g_driver.store(nullptr, std::memory_order_relaxed); }  // its thread is not there

overlap::Driver::Settings settings_here(int rank) {
  shm::DeferredNotes* const notes = engine::process_deferred(process(), job()->hosts);
  process_count_in_segment();
  overlap::Driver::Settings settings;
  settings.connections.rank = rank;
  settings.connections.address_count = sys::host_addresses(settings.connections.addresses);
  constexpr sys::FaultMode kModes[] = {sys::FaultMode::kernel, sys::FaultMode::user, sys::FaultMode::signal};
  settings.most = kModes[static_cast<int>(options().overlap_guard())];
  settings.least_bytes = std::min<std::uint64_t>(job()->overlap_bytes, kTuning.overlap_least_guarded);
  settings.notes = notes;
  return settings;
}

// Opens the driver once. With the lock held.
void open_driver(int rank) {
  if (g_tried) return;
  g_tried = true;
  auto* const made = new (g_memory) overlap::Driver;
  if (made->open(settings_here(rank), &g_endpoint) != Status::ok) {
    g_endpoint = {};
    made->~Driver();
    return;
  }
  pthread_atfork(before_fork, nullptr, in_child);
  g_driver.store(made, std::memory_order_release);
}

// A call has failed on this rank after it returned: nobody can raise an error any more.
void fail_late(void* communicator, const char* name, Status status, const transport::Lost& lost) {
  const auto size = static_cast<int>(reinterpret_cast<std::uintptr_t>(communicator));
  const bool known = lost.rank >= 0 && job() != nullptr;
  char who[400];
  if (known)
    std::snprintf(who, sizeof who, "rank %d on %s has died, or the connection to it is gone", lost.rank,
                  job()->hosts.of(lost.rank));
  else
    std::snprintf(who, sizeof who, "a peer failed (status %d)", static_cast<int>(status));
  log_line(LogLevel::error,
           "STRETTO_OVERLAP: MPI_%s on %d ranks returned early, and data were still to come: %s. This process ends, "
           "and with it the job",
           name, size, who);
  log_drain();
  std::abort();
}

const char* why_no_guard(int error) {
  const overlap::Refusal known = overlap::refusal_of(error);
  return known == overlap::Refusal::handled ? overlap::text_of(known) : strerrordesc_np(error);
}

// ---- What the members agree on ----

struct Word {
  transport::Endpoint endpoint;
  std::uint64_t id;
  bool guards;
  Speed speed;
};

Bootstrap members_of(State& state) { return {state.rank, state.size, &state.handle, allgather_bytes}; }

constexpr std::uint32_t bits(std::initializer_list<Collective> all) {
  std::uint32_t made = 0;
  for (const Collective as : all) made |= std::uint32_t{1} << static_cast<int>(as);
  return made;
}
constexpr std::uint32_t kServed =
    bits({Collective::bcast, Collective::gather, Collective::gatherv, Collective::scatter, Collective::scatterv,
          Collective::allgather, Collective::allgatherv, Collective::alltoall, Collective::alltoallv,
          Collective::reduce, Collective::allreduce});
// In these only some ranks know how long the call is.
constexpr std::uint32_t kOfUnknownLength = bits({Collective::gatherv, Collective::scatterv, Collective::alltoallv});

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
  if (!ring_.resize(size, 0) || !place_.resize(size, 0)) std::abort();  // a few words a rank: all members need them
  for (int r = 0; r < state.size; ++r) ring_[r] = r;
  std::sort(ring_.begin(), ring_.end(), [&](int a, int b) {
    const std::int32_t one = nodes[job_ranks[a]], other = nodes[job_ranks[b]];
    return one != other ? one < other : a < b;
  });
  for (int i = 0; i < state.size; ++i) place_[ring_[i]] = i;
}

std::uint32_t Overlap::wanted() const { return stage_ == Stage::off ? 0 : kServed & job()->wanted; }

// All members wait for one another when they agree. So it is put off until a collective makes them
// wait anyway, unless no such collective comes for long.
bool Overlap::takes(Collective as, std::uint64_t bytes) {
  constexpr std::uint32_t kCallsOfAnyKind = 2;
  if (stage_ == Stage::declined || (wanted() & bits({as})) == 0) return false;
  const bool knows_length = (kOfUnknownLength & bits({as})) == 0;
  if (knows_length && bytes < job()->overlap_bytes) return false;
  if (job()->overlap_tries && !tries(as, knows_length ? bytes : 0)) return false;
  if (stage_ == Stage::unasked && (waits_for_all(as) || ++asked_ >= kCallsOfAnyKind))
    stage_ = open() ? Stage::open : Stage::declined;
  return stage_ == Stage::open;
}

// STRETTO_OVERLAP=auto.
bool Overlap::tries(Collective as, std::uint64_t bytes) {
  Trial& trial = *trials_.find(as, bytes);
  const Trial::Next next = trial.begins(sys::now_ns());
  if (next != Trial::Next::compare) return next == Trial::Next::with;
  TrialMedians longest;
  for (const TrialMedians& each : of_all(members_of(*state_), trial.medians())) {
    longest.without_ns = std::max(longest.without_ns, each.without_ns);
    longest.with_ns = std::max(longest.with_ns, each.with_ns);
  }
  const bool keeps = trial.decide(longest);
  if (state_->rank == 0 && options().explain()) {
    log_explain("overlap: %s of %llu bytes: %.3f ms from call to call, %.3f without overlap: %s",
                kCollectiveNames[static_cast<int>(as)], static_cast<unsigned long long>(bytes),
                static_cast<double>(longest.with_ns) * 1e-6, static_cast<double>(longest.without_ns) * 1e-6,
                keeps ? "kept" : "off");
  }
  return keeps;
}

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
  const overlap::Driver::Result result = driver()->run(call, policy_);
  if (result.early) g_deferring.store(true, std::memory_order_relaxed);
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

// Peers hear that this rank gives up.
engine::Outcome Overlap::give_up() {
  for (int r = 0; r < state_->size; ++r) {
    if (r != state_->rank) driver()->abandon(job_ranks_[r], id_);
  }
  return engine::outcome_of(Status::no_memory);
}

// One long message by connections of our own.
bool Overlap::pass(int peer, bool sends, char* data, std::uint64_t bytes, std::uint64_t number) {
  const overlap::Outgoing send{job_ranks_[peer], data, bytes};
  const overlap::Incoming receive{job_ranks_[peer], {0, bytes}};
  const overlap::Block block{0, bytes};
  overlap::Exchange call;
  call.comm = id_;
  call.call = ~number;  // no collective comes so far
  call.is_measuring = true;
  call.sends = &send;
  call.send_count = sends ? 1 : 0;
  call.receives = &receive;
  call.receive_count = sends ? 0 : 1;
  call.buffer = data;
  call.buffer_bytes = bytes;
  call.blocks = &block;
  call.block_count = 1;
  return driver()->run(call, policy_).status == Status::ok;
}

// Rank 0 and the first one on another node send a long message there and back, by turns. Copying is
// not hidden, so connections may be a little slower.
bool Overlap::is_fast_enough() {
  constexpr std::uint64_t kBytes = 512 << 10;
  constexpr int kTrips = 3;
  const int me = state_->rank;
  int other = 1;
  while (other < state_->size && nodes_[job_ranks_[other]] == nodes_[job_ranks_[0]]) ++other;
  std::uint64_t ours_ns = ~std::uint64_t{0}, next_ns = ours_ns;
  const bool sends = me == 0 || me == other;
  char* const data = sends ? static_cast<char*>(std::calloc(kBytes, 1)) : nullptr;
  bool fine = everybody(members_of(*state_), other < state_->size && (!sends || data != nullptr));
  if (fine && sends) {
    const int peer = me == 0 ? other : 0;
    std::uint64_t number = 0;
    const auto by_ours = [&](bool sends_now) { return pass(peer, sends_now, data, kBytes, number++); };
    const auto by_next = [&](bool sends_now) { return transport::pass(next_, policy_, peer, sends_now, data, kBytes); };
    const auto there_and_back = [&](const auto& over, std::uint64_t* least) {
      const std::uint64_t begin = sys::now_ns();
      fine = fine && over(me == 0) && over(me != 0);
      *least = std::min(*least, sys::now_ns() - begin);
    };
    for (int trip = 0; trip < kTrips && fine; ++trip) {
      there_and_back(by_ours, &ours_ns);
      there_and_back(by_next, &next_ns);
    }
  }
  std::free(data);
  return everybody(members_of(*state_), fine && (me != 0 || ours_ns * 10 <= next_ns * 12));
}

bool Overlap::open() {
  const std::int32_t me = job_ranks_[state_->rank];
  Word mine{};
  {
    const Locked locked(g_lock);
    open_driver(me);
    mine.endpoint = g_endpoint;
    mine.id = static_cast<std::uint64_t>(me) << 32 | ++g_communicators;
  }
  overlap::Driver* const own = driver();
  mine.speed = g_speed.load(std::memory_order_relaxed);
  mine.guards = own != nullptr && own->guard_error() == 0;
  const stretto::Array<Word> all = of_all(members_of(*state_), mine);
  if (own != nullptr) own->starts(sys::now_ns());
  id_ = all[0].id;
  const bool able = std::all_of(all.begin(), all.end(), [](const Word& word) { return word.endpoint.able; });
  const bool useful = std::any_of(all.begin(), all.end(), [](const Word& word) { return word.guards; });
  const bool explains = state_->rank == 0 && options().explain();
  if (own != nullptr && !mine.guards && options().explain())
    log_explain("overlap: no call returns early on rank %d: %s", me, why_no_guard(own->guard_error()));
  if (!able || !useful) {
    if (explains) log_explain("overlap: off: %s", able ? "no rank can guard its memory" : "members cannot connect");
    return false;
  }
  bool met = true;
  for (int r = 0; r < state_->size && met; ++r)
    met = r == state_->rank || own->introduce(job_ranks_[r], all[static_cast<std::size_t>(r)].endpoint) == Status::ok;
  const bool met_all = everybody(members_of(*state_), met);
  Speed speed = all[0].speed;
  if (met_all && job()->overlap_measures && speed == Speed::unknown)
    speed = is_fast_enough() ? Speed::fine : Speed::slow;
  g_speed.store(speed, std::memory_order_relaxed);
  const bool open = met_all && speed != Speed::slow;
  if (explains && met_all && !open)
    log_explain("overlap: off: the MPI moves long messages faster than connections of our own");
  if (explains && (open || !met_all))
    log_explain("overlap: %s", open ? "collectives between nodes may return before their data are there"
                                    : "off: a member would have too many connections");
  return open;
}

void overlap_each_site(void (*each)(void* context, const overlap::Sites::Site& site), void* context) {
  overlap::Driver* const all = driver();
  if (all == nullptr) return;
  all->each_site([&](const overlap::Sites::Site& site) { each(context, site); });
}

bool overlap_any_away() {
  const overlap::Driver* const all = driver();
  return all != nullptr && all->any_away();
}

void overlap_complete(const void* memory, std::uint64_t bytes) {
  overlap::Driver* const all = driver();
  if (all == nullptr || !all->any_away()) return;
  const Inside inside;
  all->complete(memory, bytes, engine::schedule_policy(process()));
}

void overlap_complete_all() {
  overlap::Driver* const all = driver();
  if (all == nullptr) return;
  const Inside inside;
  all->complete_all(engine::schedule_policy(process()));
}

void overlap_stop() {
  overlap::Driver* const all = driver();
  if (all == nullptr) return;
  g_driver.store(nullptr, std::memory_order_release);
  all->close();
  all->~Driver();
}

}  // namespace stretto::mpi
