// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/nonblocking.hpp"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/demands.hpp"
#include "mpi/host/imports.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/transport.hpp"
#include "mpi/job/world.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/state/neighborhood.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {

namespace {

// All messages go through the team. Nothing is left for another transport.
constexpr transport::Transport kNowhere = {
    nullptr, [](void*, int, std::uint32_t, const char*, std::uint64_t, std::uint32_t) { return false; },
    [](void*, int, std::uint32_t, char*, std::uint64_t, std::uint32_t) { return false; },
    [](void*, std::uint32_t*, int) { return 0; }, [](void*) { return Status::invalid; }};

template <class... Each>
constexpr std::uint32_t set_of(Each... each) {
  return ((1u << static_cast<int>(each)) | ...);
}

constexpr std::uint32_t kWaitForAll = [] {
  std::uint32_t set = 0;
  for (int c = 0; c < kCollectives; ++c) {
    if (waits_for_all(static_cast<Collective>(c))) set |= 1u << c;
  }
  return set;
}();

// What was measured to be faster than the host's (docs/results/nonblocking.md), and the same with
// lengths of their own for all ranks.
constexpr std::uint32_t kMeasured =
    set_of(Collective::barrier, Collective::bcast, Collective::gather, Collective::gatherv, Collective::scatter,
           Collective::scatterv, Collective::allgather, Collective::allgatherv, Collective::alltoall,
           Collective::alltoallv, Collective::reduce, Collective::allreduce);

// Of the host's messages by which members on a node make a team. Negative: there is none.
class Number {
 public:
  explicit Number(const State& state) : number_(transport_take_number(state.handle, true)) {}
  ~Number() {
    if (number_ >= 0) transport_release_number(number_);
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

// Opens the scheduler, whose messages to members elsewhere go by `elsewhere`.
void open_scheduler(Nonblocking& made, const State& state, const topo::Placement& placement,
                    const topo::LevelChoice& levels, int nodes, const transport::Transport& elsewhere,
                    engine::Process& process) {
  select::Selector selector;
  if (!selector.start({.ranks = state.size, .nodes = nodes, .forced = kNativeCollectives}, made.rules)) std::abort();
  if (state.reproducible == ReproducibleChoice::rank) selector.keep_order();
  selector.connect(nodes > 1);
  if (!made.scheduler.open(state.rank, placement, levels, elsewhere, engine::schedule_policy(process),
                           std::move(selector)))
    std::abort();  // a few kilobytes, and members cannot agree without them
  made.scheduler.stay_apart();
  if (neighborhood_read(state, made.neighborhood)) made.scheduler.set_neighborhood(made.neighborhood);
}

// Returns false on all members.
bool refused(const State& state, const char* why) {
  demand_refused(Option::nonblocking, state.size, why);
  return false;
}

// All members share memory.
bool open_on_node(Nonblocking& made, State& state, engine::Process& process) {
  topo::Placement placement;
  placement.start(state.size);
  open_scheduler(made, state, placement, {}, 1, kNowhere, process);
  const engine::Bootstrap bootstrap = {state.rank, state.size, &state.handle, allgather_bytes};
  engine::Decline why;
  engine::Comm* const team = engine::comm_create(process, bootstrap, 0, why);
  if (team == nullptr) return refused(state, why.reason);
  Array<int> everybody;
  for (int r = 0; r < state.size; ++r) everybody.push(r);
  if (everybody.failed()) std::abort();  // a few kilobytes, and members cannot agree without them
  made.scheduler.join(team, everybody.data());
  made.served = engine::comm_collectives(*state.engine);
  return true;
}

// Members on one node share memory if they can. All others have connections.
bool open_between_nodes(Nonblocking& made, State& state, const int* job_ranks, int nodes, engine::Process& process) {
  for (int r = 0; r < state.size; ++r) made.job_ranks.push(job_ranks[r]);
  const int* const ranks = made.job_ranks.data();
  NearMembers near;
  topo::Placement placement;
  if (made.job_ranks.failed() || !near.find(state.rank, state.size, ranks) ||
      !job()->place(&placement, ranks, state.size))
    std::abort();  // a few kilobytes, and members cannot agree without them
  const Number number(state);
  if (number.get() < 0) return refused(state, "there is no room for its messages in the MPI's tags");
  MpiTransport words;
  words.start(ranks, number.get());
  engine::Decline why;
  engine::Comm* const team = near.share(process, words.transport(), why);
  if (!made.connections.open(state, ranks, team != nullptr ? &near : nullptr)) {
    engine::comm_free(team);
    return refused(state, "members cannot connect, or a member would have too many connections");
  }
  open_scheduler(made, state, placement, job()->levels, nodes, made.connections.transport(), process);
  if (team != nullptr) made.scheduler.join(team, near.ranks.data());
  made.scheduler.watch({0, &job()->hosts, ranks, &process});
  made.served = job()->wanted & ~unable_on(state);
  return true;
}

// Null on all members or on none.
Nonblocking* create(State& state, const int* job_ranks, engine::Process& process) {
  const int nodes = job_ranks != nullptr && state.engine == nullptr ? nodes_of(job_ranks, state.size) : 1;
  if (state.engine == nullptr && nodes == 1) {
    (void)refused(state, state.reason);
    return nullptr;
  }
  void* const memory = std::malloc(sizeof(Nonblocking));
  if (memory == nullptr) std::abort();  // a few kilobytes, and members cannot agree without them
  auto* const made = new (memory) Nonblocking;
  engine::process_want_lanes_apart(process);
  const bool opened =
      nodes == 1 ? open_on_node(*made, state, process) : open_between_nodes(*made, state, job_ranks, nodes, process);
  if (!opened) {
    made->~Nonblocking();
    std::free(made);
    return nullptr;
  }
  const bool measured = state.nonblocking_choice == NonblockingChoice::automatic;
  if (measured) made->served &= kMeasured;
  if (nodes == 1)
    report_requests(state, measured ? "ours, over shared memory, where that was measured to be faster"
                                    : "ours, over shared memory");
  requests_add(*made);
  g_nonblocking.store(true, std::memory_order_relaxed);
  return made;
}

// Whether the program of a member has functions that forbid to serve calls with requests. It is
// collective, because members may run different programs.
bool a_program_forbids(const State& state) {
  struct Word {
    char name[64];
  } mine = {};
  (void)find_import_that_forbids_requests(mine.name, sizeof mine.name);
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(state.size) * sizeof(Word)));
  // The other members wait for this rank's word.
  if (all == nullptr || !allgather_bytes(const_cast<MPI_Comm*>(&state.handle), &mine, all, sizeof mine)) std::abort();
  int rank = 0;
  while (rank < state.size && all[rank].name[0] == 0) ++rank;
  const bool forbids = rank < state.size;
  if (forbids) {
    char how[160];
    std::snprintf(how, sizeof how, "the MPI, because the program of rank %d calls %.64s", rank, all[rank].name);
    report_requests(state, how);
  }
  std::free(all);
  return forbids;
}

}  // namespace

bool nonblocking_may_ask(const State& state) {
  return state.nonblocking_choice == NonblockingChoice::automatic && state.nonblocking == nullptr &&
         state.withheld == 0 && state.engine != nullptr && vendor::nonblocking_gains();
}

void nonblocking_agreed(State& state, const int* job_ranks, engine::Process& process) {
  if (state.check == 3) state.nonblocking_choice = NonblockingChoice::off;  // results would have to be compared
  if (state.nonblocking_choice == NonblockingChoice::on) state.nonblocking = create(state, job_ranks, process);
  if (nonblocking_may_ask(state)) g_nonblocking.store(true, std::memory_order_relaxed);
}

void nonblocking_meet(State& state, engine::Process& process) {
  state.served |= std::exchange(state.withheld, 0);
  state.nonblocking = a_program_forbids(state) ? nullptr : create(state, nullptr, process);
  if (state.nonblocking == nullptr) state.nonblocking_choice = NonblockingChoice::off;
}

Nonblocking* nonblocking_create_like(State& state, engine::Process& process) {
  return create(state, state.nonblocking->job_ranks.data(), process);
}

void nonblocking_free(Nonblocking* nonblocking) {
  if (nonblocking == nullptr || !requests_release(*nonblocking)) return;
  nonblocking->~Nonblocking();
  std::free(nonblocking);
}

// A call that the host has refused on this rank alone is none, so it does not count.
int request_left_to_host(int code) {
  State* const state = std::exchange(t_thread.asks, nullptr);
  if (state == nullptr || code != MPI_SUCCESS) return code;
  state->withheld = state->served & kWaitForAll;
  state->served &= ~state->withheld;
  return code;
}

}  // namespace stretto::mpi
