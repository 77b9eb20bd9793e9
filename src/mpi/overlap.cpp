// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/packed_buffer.hpp"
#include "engine/scheduler.hpp"
#include "mpi/job.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/process.hpp"
#include "mpi/progress.hpp"
#include "overlap/driver.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

// ---- The process's driver ----

alignas(overlap::Driver) constinit unsigned char g_memory[sizeof(overlap::Driver)] = {};
constinit std::atomic<overlap::Driver*> g_driver = nullptr;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit bool g_tried = false;  // under the lock
constinit transport::Endpoint g_endpoint = {};
constinit std::uint32_t g_communicators = 0;

}  // namespace

constinit std::atomic<bool> g_deferring = false;

namespace {

overlap::Driver* driver() { return g_driver.load(std::memory_order_acquire); }

void before_fork() {
  if (overlap::Driver* const all = driver()) all->complete_before_fork();
}
void in_child() { g_driver.store(nullptr, std::memory_order_relaxed); }  // its thread is not there

overlap::Driver::Settings settings_here(int rank) {
  overlap::Driver::Settings settings;
  settings.connections.rank = rank;
  settings.connections.address_count = sys::host_addresses(settings.connections.addresses);
  settings.most = options().overlap_guard() == OverlapGuardChoice::user ? sys::FaultMode::user : sys::FaultMode::kernel;
  settings.least_bytes = std::min<std::uint64_t>(job()->overlap_bytes, kTuning.overlap_least_guarded);
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

// ---- What the members agree on ----

struct Word {
  transport::Endpoint endpoint;
  std::uint64_t id;
  bool guards;
};

template <class T>
stretto::Array<T> of_all(State& state, const T& mine) {
  stretto::Array<T> all;
  if (!all.resize(static_cast<std::size_t>(state.size), mine))
    std::abort();  // a few words a rank: the others wait for ours
  if (!allgather_bytes(&state.handle, &mine, all.data(), sizeof mine)) std::abort();
  return all;
}

bool everybody(State& state, bool mine) {
  const stretto::Array<std::uint8_t> all = of_all<std::uint8_t>(state, mine ? 1 : 0);
  return std::all_of(all.begin(), all.end(), [](std::uint8_t word) { return word != 0; });
}

constexpr std::uint32_t bit(Collective as) { return std::uint32_t{1} << static_cast<int>(as); }

}  // namespace

Overlap::~Overlap() {
  if (stage_ == Stage::open && driver() != nullptr) driver()->forget(id_, policy_);
}

void Overlap::start(State& state, const int* job_ranks, const transport::Transport& next,
                    const shm::WaitPolicy& policy) {
  if (job()->overlap_bytes == 0) return;
  stage_ = Stage::unasked;
  state_ = &state;
  job_ranks_ = job_ranks;
  next_ = next;
  policy_ = policy;
}

std::uint32_t Overlap::wanted() const {
  return stage_ == Stage::off ? 0 : (bit(Collective::alltoall) | bit(Collective::alltoallv)) & job()->wanted;
}

bool Overlap::takes(Collective as, std::uint64_t bytes) {
  if ((wanted() & bit(as)) == 0 || stage_ == Stage::declined) return false;
  if (as == Collective::alltoall && bytes < job()->overlap_bytes) return false;
  if (stage_ == Stage::unasked) {
    stage_ = open() ? Stage::open : Stage::declined;
    calls_ = 0;
  }
  return stage_ == Stage::open;
}

bool Overlap::open() {
  const std::int32_t me = job_ranks_[state_->rank];
  Word mine{};
  pthread_mutex_lock(&g_lock);
  open_driver(me);
  mine.endpoint = g_endpoint;
  mine.id = static_cast<std::uint64_t>(me) << 32 | ++g_communicators;
  pthread_mutex_unlock(&g_lock);
  overlap::Driver* const own = driver();
  mine.guards = own != nullptr && own->guard_error() == 0;
  const stretto::Array<Word> all = of_all(*state_, mine);
  id_ = all[0].id;
  const bool able = std::all_of(all.begin(), all.end(), [](const Word& word) { return word.endpoint.able; });
  const bool useful = std::any_of(all.begin(), all.end(), [](const Word& word) { return word.guards; });
  const bool explains = state_->rank == 0 && options().explain();
  if (own != nullptr && !mine.guards && options().explain())
    log_explain("overlap: no call returns early on rank %d: %s", me, strerrordesc_np(own->guard_error()));
  if (!able || !useful) {
    if (explains) log_explain("overlap: off: %s", able ? "no rank can guard its memory" : "members cannot connect");
    return false;
  }
  bool met = true;
  for (int r = 0; r < state_->size && met; ++r)
    met = r == state_->rank || own->introduce(job_ranks_[r], all[static_cast<std::size_t>(r)].endpoint) == Status::ok;
  const bool open = everybody(*state_, met);
  if (explains)
    log_explain("overlap: %s", open ? "Alltoall and Alltoallv between nodes may return before their data are there"
                                    : "off: a member would have too many connections");
  return open;
}

namespace {

bool all_flat(const Blocks& blocks, int ranks) {
  for (int r = 0; r < ranks; ++r) {
    const Region block = blocks.at(r);
    if (block.bytes() != 0 && block.flat() == nullptr) return false;
  }
  return true;
}

// Blocks as places in plain memory: in the program's, or packed one after the other in a copy.
class Places {
 public:
  Places() = default;
  ~Places() { std::free(copy_); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // False: no memory. `packs`: the copy begins with what the blocks hold.
  bool start(const Blocks& blocks, int ranks, bool copies, bool packs) {
    blocks_ = blocks;
    ranks_ = ranks;
    if (!begins_.resize(static_cast<std::size_t>(ranks) + 1, 0)) return false;
    for (int r = 0; r < ranks; ++r) begins_[r + 1] = begins_[r] + blocks.at(r).bytes();
    copies = copies || !all_flat(blocks, ranks);
    if (!copies) return true;
    copy_ = static_cast<char*>(std::malloc(begins_[ranks] != 0 ? begins_[ranks] : 1));
    for (int r = 0; r < ranks && copy_ != nullptr && packs; ++r) {
      const Region block = blocks.at(r);
      Stream(block).pack(copy_ + begins_[r], block.bytes());
    }
    return copy_ != nullptr;
  }
  [[nodiscard]] bool is_copy() const { return copy_ != nullptr; }
  [[nodiscard]] std::uint64_t bytes(int r) const { return begins_[r + 1] - begins_[r]; }
  [[nodiscard]] char* at(int r) const { return copy_ != nullptr ? copy_ + begins_[r] : blocks_.at(r).flat(); }
  void unpack() const {
    for (int r = 0; r < ranks_ && copy_ != nullptr; ++r) {
      const Region block = blocks_.at(r);
      Stream(block).unpack(copy_ + begins_[r], block.bytes());
    }
  }

 private:
  Blocks blocks_{};
  int ranks_ = 0;
  stretto::Array<std::uint64_t> begins_;
  char* copy_ = nullptr;
};

}  // namespace

engine::Outcome Overlap::alltoall(const Blocks& send, const Blocks& receive, bool in_place, bool may_defer) {
  const int ranks = state_->size, me = state_->rank;
  Places from, to;
  stretto::Array<overlap::Outgoing> sends;
  stretto::Array<overlap::Incoming> receives;
  const bool fine = to.start(receive, ranks, false, in_place) &&
                    from.start(in_place ? receive : send, ranks, in_place, true) &&
                    sends.reserve(static_cast<std::size_t>(ranks)) && receives.reserve(static_cast<std::size_t>(ranks));
  if (!fine) {  // peers hear that this rank gives up
    for (int r = 0; r < ranks; ++r)
      if (r != me) driver()->abandon(job_ranks_[r], id_);
    return engine::outcome_of(Status::no_memory);
  }
  overlap::Exchange call;
  char* end = nullptr;
  std::uint64_t total = 0;
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t bytes = to.bytes(r);
    total += bytes;
    if (bytes == 0) continue;
    char* const at = to.at(r);
    if (call.buffer == nullptr || at < call.buffer) call.buffer = at;
    if (end == nullptr || at + bytes > end) end = at + bytes;
  }
  call.buffer_bytes = static_cast<std::uint64_t>(end - call.buffer);
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t offset = to.bytes(r) != 0 ? static_cast<std::uint64_t>(to.at(r) - call.buffer) : 0;
    if (r == me) {
      call.own = {offset, to.bytes(me)};
      const std::uint64_t common = std::min(from.bytes(me), to.bytes(me));
      if (!in_place && common != 0) std::memmove(to.at(me), from.at(me), common);
      continue;
    }
    if (to.bytes(r) != 0) receives.push({job_ranks_[r], {offset, to.bytes(r)}});
  }
  // Each rank begins with the one behind it, so that no rank gets from all at once.
  for (int step = 1; step < ranks; ++step) {
    const int r = (me + step) % ranks;
    if (from.bytes(r) != 0) sends.push({job_ranks_[r], from.at(r), from.bytes(r)});
  }
  call.comm = id_;
  call.call = calls_++;
  call.name = "Alltoall";
  call.sends = sends.data();
  call.send_count = sends.size();
  call.receives = receives.data();
  call.receive_count = receives.size();
  call.may_return_early = may_defer && !to.is_copy() && total >= job()->overlap_bytes;
  call.mourner = {reinterpret_cast<void*>(static_cast<std::uintptr_t>(ranks)), fail_late};
  const overlap::Driver::Result result = driver()->run(call, policy_);
  if (result.early)
    g_deferring.store(true, std::memory_order_relaxed);
  else
    to.unpack();
  engine::Outcome outcome{result.status, result.early ? Path::deferred : Path::schedule, 0};
  outcome.bytes = total;
  return outcome;
}

void overlap_complete(const void* memory, std::uint64_t bytes) {
  overlap::Driver* const all = driver();
  if (all == nullptr || !all->any_away()) return;
  const Inside inside;
  all->complete(memory, bytes, engine::schedule_policy(process()));
}

void overlap_complete_all() {
  overlap::Driver* const all = driver();
  if (all == nullptr || !all->any_away()) return;
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
