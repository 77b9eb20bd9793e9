// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats/profile.hpp"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "base/locked.hpp"
#include "mpi/data/datatype.hpp"
#include "mpi/host/call_sites.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/world.hpp"
#include "mpi/state/state.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

thread_local constinit CallSize t_call_size STRETTO_TLS = {};

namespace {

constinit observe::StatsPage* g_page = nullptr;
constinit int g_descriptor = -1;
constinit std::uint64_t g_began_ns = 0;
constinit observe::ClockOffset g_clock = {};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the profile where threads call

// A few of these bytes for each rank go to rank 0.
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

class LockedProfile {
 public:
  LockedProfile() : locks_(g_concurrent.load(std::memory_order_relaxed)) {
    if (locks_) pthread_mutex_lock(&g_lock);
  }
  ~LockedProfile() {
    if (locks_) pthread_mutex_unlock(&g_lock);
  }
  LockedProfile(const LockedProfile&) = delete;
  LockedProfile& operator=(const LockedProfile&) = delete;

 private:
  bool locks_;
};

// ---- How large a call is ----

// 0 for a type that the host refuses: the call had an error.
std::uint64_t type_bytes(MPI_Datatype type) {
  if (const Layout* const plain = plain_layout(type)) return plain->size;
  const Layout* const layout = layout_acquire(type);
  const std::uint64_t bytes = layout != nullptr ? layout->size : 0;
  layout_release(layout);
  return bytes;
}

std::uint64_t bytes_of(const CallSize& size, const State& state) {
  const auto entry = [&](int r) -> std::uint64_t {
    const std::int64_t count =
        size.wide ? static_cast<const std::int64_t*>(size.counts)[r] : static_cast<const int*>(size.counts)[r];
    return count > 0 ? static_cast<std::uint64_t>(count) : 0;
  };
  const auto type = (MPI_Datatype)size.type;  // NOLINT: an int or a pointer
  std::uint64_t elements = size.count > 0 ? static_cast<std::uint64_t>(size.count) : 0, bytes = 0;
  if (size.kind != CallSize::Counts::none) {
    if (size.counts == nullptr) return 0;
    if (size.kind == CallSize::Counts::own) elements = entry(state.rank);
    for (int r = 0; r < state.size && size.kind != CallSize::Counts::own; ++r) {
      elements += entry(r);
      if (size.types != nullptr && entry(r) != 0)
        bytes += entry(r) * type_bytes(static_cast<const MPI_Datatype*>(size.types)[r]);
    }
  }
  if (size.types == nullptr) bytes = elements != 0 ? elements * type_bytes(type) : 0;
  return size.kind == CallSize::Counts::mean ? bytes / static_cast<std::uint64_t>(state.size) : bytes;
}

// ---- Which calls are compared ----

// A hash of the size, and of some members' ranks in MPI_COMM_WORLD. 0: some are of another world.
// Some hosts search one group for each rank of the other, so few are looked up. Where two
// communicators have the same hash, some ranks are members of both. They hand in a call twice, and
// such calls are not compared.
std::uint64_t members_of(const State& state) {
  constexpr int kLookedUp = 16;
  const Inside inside;
  const int count = state.size < kLookedUp ? state.size : kLookedUp;
  int ranks[kLookedUp], found[kLookedUp];
  for (int i = 0; i < count; ++i) ranks[i] = static_cast<int>(std::int64_t{i} * state.size / count);
  MPI_Group mine, all;
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ static_cast<unsigned>(state.size);  // FNV-1a
  bool known = false;
  if (host().Comm_group(state.handle, &mine) == MPI_SUCCESS) {
    if (host().Comm_group(host().constants.comm_world, &all) == MPI_SUCCESS) {
      known = host().Group_translate_ranks(mine, count, ranks, all, found) == MPI_SUCCESS;
      host().Group_free(&all);
    }
    host().Group_free(&mine);
  }
  for (int i = 0; i < count && known; ++i) {
    known = found[i] != MPI_UNDEFINED;
    hash = (hash ^ static_cast<unsigned>(found[i])) * 0x100000001b3ULL;
  }
  return known ? hash | 1 : 0;
}

// The communicator's number in the profile. Negative: its calls are not compared.
std::int16_t compared_as(State& state) {
  if (state.profiled != State::kNotProfiled) [[likely]]
    return state.profiled;
  state.profiled = -1;
  observe::CallProfile& profile = g_page->profile;
  if (state.size < 2 || !world().agreed || profile.communicator_count() == observe::CallProfile::kCommunicators)
    return -1;
  const std::uint64_t members = members_of(state);
  if (members != 0)
    state.profiled = profile.add_communicator(members, static_cast<std::uint32_t>(state.size),
                                              static_cast<std::uint32_t>(state.rank));
  return state.profiled;
}

void locate(observe::KeptCall& kept, std::uint64_t caller) {
  const shm::Module* const module = caller != 0 ? g_call_modules.find(caller - 1) : nullptr;
  if (module == nullptr || !shm::is_binding(module->path)) return;
  shm::SourceLine line;
  if (call_site_locate(caller, &line)) g_page->profile.set_line(kept, line.text, line.caller);
}

// ---- Clocks ----

// Rank 0's clock may show another time than this rank's: nodes start at different times.
observe::ClockOffset measure_clock() {
  const Constants& c = host().constants;
  observe::ClockRound mine[observe::kClockRounds] = {}, root[observe::kClockRounds] = {};
  for (observe::ClockRound& round : mine) {
    round.enter_ns = sys::now_ns();
    host().Barrier(c.comm_world);
    round.leave_ns = sys::now_ns();
  }
  std::memcpy(root, mine, sizeof root);
  host().Bcast(root, sizeof root, c.byte, 0, c.comm_world);
  return observe::clock_offset(mine, root);
}

}  // namespace

void profile_begin() {
  g_began_ns = sys::now_ns();
  g_page = observe::StatsPage::create(g_began_ns, &g_descriptor);
}

void profile_meet() {
  g_clock = measure_clock();
  g_began_ns = g_clock.at_ns;
  if (g_page == nullptr) return;
  g_page->clock = g_clock;
  g_page->began_ns = g_began_ns;
  g_page->profile.start_at(g_began_ns);
}

void profile_abort() {
  if (g_page != nullptr) g_page->aborts.store_release(1);
}

observe::StatsPage* profile_page() { return g_page; }
int profile_descriptor() { return g_descriptor; }
std::uint64_t profile_ns() { return sys::now_ns() - g_began_ns; }

void profile_open(const Call& call) {
  if (g_page == nullptr) return;
  State& state = *call.state;
  if (state.profiled == State::kNotProfiled) {
    const LockedProfile locked;
    (void)compared_as(state);
  }
  // A reader of a dead process must not take half of this for a call.
  g_page->open.began_ns = 0;
  std::atomic_signal_fence(std::memory_order_release);
  g_page->open = {0, shm::t_call.caller, state.profiled_calls, t_call_size.root, state.profiled, call.collective()};
  std::atomic_signal_fence(std::memory_order_release);
  g_page->open.began_ns = call.began_ns;
}

void profile_refused() {
  if (g_page != nullptr) g_page->open.began_ns = 0;
}

std::uint64_t profile_call(const Call& call, Path path, std::uint64_t bytes) {
  const std::uint64_t ns = sys::now_ns() - call.began_ns;
  if (g_page == nullptr) return ns;
  State& state = *call.state;
  const std::uint64_t size = bytes_of(t_call_size, state), caller = shm::t_call.caller;
  const LockedProfile locked;
  if (g_page->modules.count.load_relaxed() != g_call_modules.count.load_relaxed())
    g_page->modules.follow(g_call_modules);
  observe::Counter& counter = g_page->counters.of[static_cast<int>(call.collective())];
  ++counter.calls[static_cast<int>(path)];
  counter.bytes += bytes;
  counter.ns += ns;
  const std::int16_t communicator = call.requested == nullptr ? compared_as(state) : std::int16_t{-1};
  observe::KeptCall* const kept =
      g_page->profile.record({call.collective(), path == Path::host, t_call_size.root == state.rank, communicator,
                              communicator < 0 ? 0 : state.profiled_calls++, size, caller, call.began_ns, ns});
  if (g_page->open.began_ns == call.began_ns) g_page->open.began_ns = 0;
  if (kept != nullptr) locate(*kept, caller);
  return ns;
}

Gathered gather_bytes(const void* mine, std::size_t bytes) {
  const Constants& c = host().constants;
  const int size = world().size, length = static_cast<int>(bytes);
  const bool root = world().rank == 0;
  auto* const lengths = static_cast<int*>(std::calloc(2 * static_cast<std::size_t>(size), sizeof(int)));
  if (lengths == nullptr) std::abort();  // a few bytes a rank, and the other ranks wait already
  host().Gather(&length, 1, c.int_, lengths, 1, c.int_, 0, c.comm_world);
  std::size_t total = 0;
  for (int r = 0; root && r < size; ++r) {
    lengths[size + r] = static_cast<int>(total);
    total += static_cast<std::size_t>(lengths[r]);
  }
  auto* const all = root ? static_cast<char*>(std::malloc(total + 1)) : nullptr;
  if (root && all == nullptr) std::abort();
  host().Gatherv(mine, length, c.byte, all, lengths, lengths + size, c.byte, 0, c.comm_world);
  return {all, lengths};
}

Waits* profile_compare() {
  const Constants& c = host().constants;
  const int size = world().size;
  auto* const waits = static_cast<Waits*>(std::calloc(1, sizeof(Waits)));
  const observe::ClockOffset end = measure_clock();
  observe::KeptHead head = {0, g_clock, end, 0, 0};
  Array<char> mine;
  observe::CallProfile* const profile = g_page != nullptr ? &g_page->profile : nullptr;
  if (profile != nullptr) {
    profile->thin(static_cast<std::uint32_t>(kMostKeptBytes / sizeof(observe::KeptCall) / size));
    head.origin_ns = profile->origin_ns();
    head.calls = static_cast<std::uint32_t>(profile->kept().size());
    head.communicators = profile->communicator_count();
  }
  const std::size_t communicators = head.communicators * sizeof(observe::ProfileCommunicator);
  const std::size_t calls = head.calls * sizeof(observe::KeptCall);
  if (!mine.resize(sizeof head + communicators + calls, 0)) std::abort();  // the other ranks wait already
  std::memcpy(mine.data(), &head, sizeof head);
  if (communicators != 0) std::memcpy(mine.data() + sizeof head, profile->communicators(), communicators);
  if (calls != 0) std::memcpy(mine.data() + sizeof head + communicators, profile->kept().data(), calls);
  const Gathered gathered = gather_bytes(mine.data(), mine.size());
  observe::RankWaits* all = nullptr;
  if (gathered.all != nullptr) {
    all = static_cast<observe::RankWaits*>(std::calloc(static_cast<std::size_t>(size), sizeof *all));
    if (all == nullptr) std::abort();
    observe::Arrivals arrivals(size);
    for (int r = 0; r < size; ++r) {
      const char* const its = gathered.all + gathered.lengths[size + r];
      observe::KeptHead of;
      std::memcpy(&of, its, sizeof of);
      const char* const after = its + sizeof of + of.communicators * sizeof(observe::ProfileCommunicator);
      arrivals.add(of, reinterpret_cast<const observe::ProfileCommunicator*>(its + sizeof of),
                   reinterpret_cast<const observe::KeptCall*>(after));
    }
    (void)arrivals.compare(all);
  }
  if (waits == nullptr) std::abort();
  host().Scatter(all, sizeof *all, c.byte, &waits->mine, sizeof waits->mine, c.byte, 0, c.comm_world);
  waits->clock_error_ns = end.error_ns;
  std::free(all);
  std::free(gathered.all);
  std::free(gathered.lengths);
  return waits;
}

}  // namespace stretto::mpi
