// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm/schedules.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/demands.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/kept_times.hpp"
#include "mpi/job/near_members.hpp"
#include "mpi/job/transport.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/state/neighborhood.hpp"
#include "select/shm_rules.hpp"
#include "sys/sys.hpp"
#include "topo/locality.hpp"

namespace stretto::mpi {

struct Schedules {
  MpiTransport transport;
  engine::Scheduler scheduler;
  Overlap overlap;
  int number = -1;           // of the transport
  bool left_behind = false;  // a failed call may have left messages unread
  bool broken = false;       // a call has failed here after it began
  int* job_ranks = nullptr;
  Array<std::int32_t> nodes;  // of the members
};

namespace {

// Lets messages to members on this node go over shared memory, if these can share it.
void join_near_members(Schedules& schedules, const State& state, engine::Process& process) {
  NearMembers near;
  if (!near.find(state.rank, state.size, schedules.job_ranks)) std::abort();  // as in schedules_create
  engine::Decline why;
  engine::Comm* const node = near.share(process, schedules.transport.transport(), why, true);
  if (node == nullptr || !engine::comm_members(*node).tiers)
    demand_refused(Option::tiers, state.size, "its ranks are on several nodes, where calls go by schedules");
  if (node != nullptr)
    schedules.scheduler.join(node, near.ranks.data());
  else if (near.ranks.size() > 1)
    log_line(LogLevel::info, "schedules: messages on the node go by the MPI: %s", why.reason);
}

// Of two members of a communicator, for short messages.
constexpr char kShortMessages[] = "short messages";

transport::TcpTransport::Measured short_times_read(void* context, int one, int other) {
  const int* const ranks = static_cast<const Schedules*>(context)->job_ranks;
  KeptTimes times;
  if (!kept_times_read(kShortMessages, ranks[one], ranks[other], &times)) return {};
  return {times.ours_ns, times.host_ns};
}

void short_times_write(void* context, int one, int other, const transport::TcpTransport::Measured& measured) {
  const int* const ranks = static_cast<const Schedules*>(context)->job_ranks;
  kept_times_write(kShortMessages, ranks[one], ranks[other], {measured.here_ns, measured.next_ns});
}

// Lets short messages to other nodes go over TCP connections, if the members want and can open
// them. The members are on several nodes. Of many members, only those connect that lead a node.
void connect_later(Schedules& schedules, State& state, engine::Process& process) {
  const std::int32_t* const nodes = job_nodes();
  const TcpChoice choice = job()->tcp;
  if (choice == TcpChoice::off) return;
  if (!schedules.nodes.resize(static_cast<std::size_t>(state.size), 0)) std::abort();  // as in schedules_create
  int connecting = 0;
  for (int r = 0; r < state.size; ++r) {
    const bool connects = state.size <= kTuning.tcp_ranks || schedules.scheduler.leads_node(r);
    schedules.nodes[static_cast<std::size_t>(r)] =
        connects ? nodes[schedules.job_ranks[r]] : transport::TcpTransport::kNobody;
    connecting += connects ? 1 : 0;
  }
  if (connecting > kTuning.tcp_ranks) demand_refused(Option::tcp, state.size, "it is on too many nodes");
  if (connecting < 2 || connecting > kTuning.tcp_ranks) return;
  transport::TcpTransport::Opening opening;
  opening.members = {state.rank, state.size, &state.handle, allgather_bytes};
  opening.nodes = schedules.nodes.data();
  opening.policy = engine::schedule_policy(process);
  opening.always = choice == TcpChoice::always;
  opening.kept = {&schedules, short_times_read, short_times_write};
  schedules.scheduler.connect_at(opening.always ? 1 : kTuning.tcp_calls, opening);
}

// Gives the engine the rules that name algorithms over shared memory. Where ranks share none, what
// is built in serves these calls.
void obey_in_memory(const State& state, int nodes) {
  select::ShmRules rules;
  if (!rules.start(job()->rules, state.size, nodes)) std::abort();  // as in schedules_create
  if (state.engine != nullptr) return engine::comm_obey(*state.engine, std::move(rules));
  if (rules.line() != 0 && state.rank == 0 && options().explain())
    log_explain(
        "communicator %llu of %d ranks: line %u of the rules names an algorithm over shared memory, which these ranks "
        "do not share; what is built in decides",
        static_cast<unsigned long long>(state.serial), state.size, rules.line());
}

}  // namespace

Schedules* schedules_create(State& state, const int* job_ranks, engine::Process& process) {
  const int nodes = nodes_of(job_ranks, state.size);
  obey_in_memory(state, nodes);
  const std::uint32_t able = ~unable_on(state);
  select::Selector selector;
  if (!selector.start({state.size, nodes, job()->wanted & able, job()->scheduled & able, state.served,
                       state.engine == nullptr && nodes > 1},
                      job()->rules))
    std::abort();  // as with the memory below
  if (state.reproducible == ReproducibleChoice::rank) selector.keep_order();
  std::uint32_t open = selector.open();
  const bool overlaps = nodes > 1 && job()->overlap_bytes != 0;
  if (open == 0 && !overlaps) return nullptr;
  const std::size_t bytes = static_cast<std::size_t>(state.size) * sizeof(int);
  void* const memory = std::malloc(sizeof(Schedules));
  auto* const ranks = static_cast<int*>(std::malloc(bytes));
  // These are a few kilobytes, and without them the members cannot agree on anything.
  if (memory == nullptr || ranks == nullptr) std::abort();
  auto* const schedules = new (memory) Schedules;
  schedules->job_ranks = static_cast<int*>(std::memcpy(ranks, job_ranks, bytes));
  topo::Placement placement;
  const bool placed = job()->place(&placement, ranks, state.size) &&
                      schedules->scheduler.open(state.rank, placement, job()->levels, schedules->transport.transport(),
                                                engine::schedule_policy(process), std::move(selector));
  schedules->number = transport_take_number(state.handle, placed);
  if (schedules->number < 0) {
    schedules_free(schedules);
    for (const Option option : {Option::overlap, Option::tcp})
      demand_refused(option, state.size, "there is no memory, or no room for its messages in the MPI's tags");
    return nullptr;
  }
  schedules->transport.start(ranks, schedules->number);
  join_near_members(*schedules, state, process);
  if (state.neighborhood != nullptr) schedules->scheduler.set_neighborhood(*state.neighborhood);
  if (nodes > 1) connect_later(*schedules, state, process);
  if (overlaps) {
    schedules->overlap.start(state, ranks, job_nodes(), schedules->transport.transport(),
                             engine::schedule_policy(process));
    open |= schedules->overlap.wanted();
  }
  if (options().explain()) schedules->scheduler.explain();
  schedules->scheduler.watch({engine::explained_after_ns(process), &job()->hosts, ranks, &process});
  state.scheduled = open;
  state.served &= ~open;
  return schedules;
}

void schedules_free(Schedules* schedules) {
  if (schedules == nullptr) return;
  if (schedules->number >= 0 && !schedules->left_behind) transport_release_number(schedules->number);
  std::free(schedules->job_ranks);
  schedules->~Schedules();
  std::free(schedules);
}

bool schedules_broken(const Schedules& schedules) { return schedules.broken; }
void schedules_left_behind(Schedules& schedules) {
  schedules.left_behind = true;
  transport_leave_behind();
}
void schedules_failed(Schedules& schedules, Status status) {
  schedules_left_behind(schedules);
  if (status != Status::truncated && status != Status::other_length) schedules.broken = true;
}
Overlap& schedules_overlap(Schedules& schedules) { return schedules.overlap; }
engine::Scheduler& schedules_scheduler(Schedules& schedules) { return schedules.scheduler; }

}  // namespace stretto::mpi
