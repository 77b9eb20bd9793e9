// SPDX-License-Identifier: BSD-3-Clause
// Collectives of one communicator as schedules (coll/hierarchy). The scheduler knows the hierarchy
// of the ranks, the plan of each call, and the programs of the latest shapes of calls. It does not
// know MPI: messages go by a transport.
//
// What serves a call, and how, follows from what all ranks know: collective, length, hierarchy
// (select/selector.hpp). The scheduler chooses once for each call, before the rank does anything
// for it. If the choice is shared memory or the host, the scheduler does nothing more, and the path
// of the outcome says so. A program is kept with the choice by which it was built, and serves only
// calls of that choice. What one rank alone knows (MPI_IN_PLACE, its own lengths) changes its
// copies, never its messages.
#pragma once
#include "coll/hierarchy/compose.hpp"
#include "engine/node_part.hpp"
#include "engine/scheduled.hpp"
#include "sched/execute.hpp"
#include "select/selector.hpp"
#include "topo/hierarchy.hpp"
#include "topo/hosts.hpp"
#include "transport/stack.hpp"

namespace stretto::engine {

inline Outcome outcome_of(Status status) { return {status, Path::schedule, 0}; }
// Schedules have done nothing, because shared memory or the host serves the call.
inline Outcome left_to(select::Backend backend) {
  return {Status::ok, backend == select::Backend::host ? Path::host : Path::cico, 0};
}

struct CachedProgram;

// A call by schedule that has begun and has not finished. Its buffers must stay until it finishes.
// A communicator has one such call at a time.
class PendingCall {
 public:
  PendingCall() = default;
  explicit PendingCall(const Scheduled& call) : call_(call) {}

 private:
  friend class Scheduler;
  Scheduled call_;
  CachedProgram* program_ = nullptr;  // null: there is no memory, so nothing has begun
};

class Scheduler {
 public:
  Scheduler() = default;
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Takes `selector`. Returns false if there is no memory.
  bool open(int rank, const topo::Placement& placement, const topo::LevelChoice& levels,
            const transport::Transport& transport, const shm::WaitPolicy& policy, select::Selector&& selector);
  // From now on messages to the members of `node`, which have these ranks, go over shared memory.
  // All of these members must call it, or none. Takes `node`.
  void join(Comm* node, const int* ranks);
  // The program does not wait for the calls of this scheduler. Call it before join().
  void stay_apart() {
    stack_.stay_apart();
    apart_ = true;
  }
  // Whether this member takes its node's messages to other nodes, in calls whose root is elsewhere.
  [[nodiscard]] bool leads_node(int rank) const;
  // Short messages to other nodes go by connections of this communicator, if its members agree to
  // that. They do so in call number `call`, or in a later one in which all ranks wait for one
  // another. `call` and `opening` are the same on all members, and what `opening` points to must
  // stay. If it names no addresses, they are found when the members agree.
  void connect_at(std::uint64_t call, const transport::TcpTransport::Opening& opening);
  // Whether a reduction must combine from left to right in rank order. `rounds`: its
  // result depends on the order.
  [[nodiscard]] bool in_order(bool rounds) const { return rounds && selector_.keeps_order(); }
  // This rank's neighbours, for neighbourhood collectives. `neighborhood` must stay.
  void set_neighborhood(const Neighborhood& neighborhood) { neighborhood_ = &neighborhood; }
  // From now on rank 0 says how calls go, once for each collective and selection.
  void explain() { explains_ = rank_ == 0; }
  // What `watch` points to must stay.
  void watch(const Watch& watch) { watch_ = watch; }
  // What serves a call of `bytes` bytes, as a plan counts them, and how.
  [[nodiscard]] select::Choice choose(Collective as, std::uint64_t bytes, bool in_order = false,
                                      bool commutative = true);
  [[nodiscard]] select::Choice choose(const Scheduled& call);
  // Whether the ranks of a node tell each other lengths before a call of this selection. A rank
  // waits for them, so calls for which the program does not wait go in turn.
  [[nodiscard]] bool goes_by_carriers(const select::Selection& selection) const;
  [[nodiscard]] const topo::Hierarchy& hierarchy_of(const select::Selection& selection) const {
    return select::levels_of(selection.over, hierarchies_);
  }
  [[nodiscard]] const select::Selector& selector() const { return selector_; }
  // A problem of this communicator, still without lengths.
  [[nodiscard]] coll::Problem problem(Collective as, int root = 0) const;
  // The three parts of a call. start() prepares it, advance() does what can be done now, and
  // finish() returns the outcome. start() and advance() do not block, except that start() may open
  // connections. advance() returns false when the call has ended. `moved`: whether anything moved.
  PendingCall start(const Scheduled& call);
  bool advance(PendingCall& pending, bool* moved = nullptr);
  // Nothing has moved for so long: whether the ranks that the call waits for can still come.
  void check_peers(std::uint64_t idle_ns) { stack_.check_peers(idle_ns); }
  Outcome finish(PendingCall& pending);
  // This rank takes no part in the call, for this reason. Peers that wait for it hear so.
  void refuse(const Scheduled& call, Status why);
  // Makes the whole call and blocks until it has ended.
  Outcome run(const Scheduled& call);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return hierarchies_.all.ranks(); }

  static constexpr int kPrograms = 16;

 private:
  CachedProgram* program_of(const Scheduled& call);
  CachedProgram* oldest();
  bool build(CachedProgram& entry, const Scheduled& call, const select::Choice& by);
  char* scratch(std::uint64_t bytes);
  void wait(PendingCall& pending);
  [[nodiscard]] bool opens_now(Collective as) const;
  void open_connections();
  [[nodiscard]] bool goes_by_node(const Scheduled& call) const;
  Outcome run_whole(const Scheduled& call);
  Outcome run_by_node(const Scheduled& call);
  void abort(Status status, const coll::Problem& problem);
  void tell_lost(Status status, const coll::Problem& problem, const transport::Lost& found);
  void say(const select::Choice& choice, Collective as, std::uint64_t bytes);

  int rank_ = 0;
  select::Selector selector_;
  const Neighborhood* neighborhood_ = nullptr;
  bool explains_ = false, apart_ = false;
  struct Said {
    const select::Selection* selection;
    Collective as;
  };
  Array<Said> said_;
  topo::Hierarchies hierarchies_;
  transport::Stack stack_;
  transport::TcpTransport::Opening opening_;
  std::uint64_t opening_call_ = 0;  // from which call on connections are opened; 0: no longer, or never
  Comm* node_ = nullptr;            // the members on this node, whose team the stack uses
  NodePart node_part_;
  shm::WaitPolicy policy_;
  void (*poke_)(void* host) = nullptr;  // the policy's poke, kept here while the transport itself drives the host
  Watch watch_;
  coll::Builder builder_;
  CachedProgram* entries_[kPrograms] = {};
  std::uint64_t calls_ = 0;
  char* scratch_ = nullptr;
  std::uint64_t scratch_bytes_ = 0;
};

// How this process waits for the messages of schedules.
shm::WaitPolicy schedule_policy(Process& process);

// After how long a wait the rank explains a call. 0: never.
std::uint64_t explained_after_ns(const Process& process);

}  // namespace stretto::engine
