// SPDX-License-Identifier: BSD-3-Clause
// Collectives of one communicator as schedules (coll/hierarchy): which hierarchy its ranks form,
// which plan a call goes by, and the programs of the shapes that were called last. Knows no MPI:
// messages go by a transport.
//
// Who serves a call, and by which way, is a function of what all ranks know: collective, length,
// hierarchy (select/selector.hpp). It is chosen once for each call, before the rank does anything
// for it. A call that shared memory or the host serves ends there: its outcome's path says so. A
// program is kept with the way that it was built by, and serves calls of that way only. What a rank
// alone knows (MPI_IN_PLACE, its own lengths) changes its copies, never its messages.
#pragma once
#include "coll/hierarchy/compose.hpp"
#include "engine/engine.hpp"
#include "sched/execute.hpp"
#include "select/selector.hpp"
#include "topo/hierarchy.hpp"
#include "topo/hosts.hpp"
#include "transport/stack.hpp"

namespace stretto::engine {

// One call: the problem in units, what its buffers and units are, and what was chosen for it.
struct Scheduled {
  coll::Problem problem;
  std::uint64_t unit_bytes = 1;
  const char* send = nullptr;
  char* receive = nullptr;
  sched::Combination combination{};
  select::Choice choice{};  // without a selection: run() chooses
};

// After how long a wait the rank says whom it waits for, and by which names.
struct Watch {
  std::uint64_t limit_ns = 0;  // 0: never
  const topo::Hosts* hosts = nullptr;
  const int* job_ranks = nullptr;  // of the communicator's
  [[nodiscard]] const char* host_of(int rank) const { return hosts != nullptr ? hosts->of(job_ranks[rank]) : "a host"; }
};

inline Outcome outcome_of(Status status) { return {status, Path::schedule, 0}; }
// Nothing was done: somebody else serves the call.
inline Outcome left_to(select::Backend backend) {
  return {Status::ok, backend == select::Backend::host ? Path::host : Path::cico, 0};
}

struct CachedProgram;

// A call by schedule that has begun and not finished. What its arguments name stays until then. A
// communicator has one such call at a time.
class PendingCall {
 public:
  explicit PendingCall(const Scheduled& call) : call_(call) {}

 private:
  friend class Scheduler;
  Scheduled call_;
  CachedProgram* program_ = nullptr;  // null: there is no memory, and nothing has begun
};

class Scheduler {
 public:
  Scheduler() = default;
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Takes `choices`. False: no memory.
  bool open(int rank, const topo::Placement& placement, const topo::LevelChoice& levels,
            const transport::Transport& transport, const shm::WaitPolicy& policy, select::Selector&& selector);
  // Messages to `node`'s members, which are these ranks, go over shared memory from now on. All of
  // them say so, or none. Takes `node`.
  void join(Comm* node, const int* ranks);
  // Short messages to other nodes go by connections of this communicator's own, from this call on
  // or a later one that makes all ranks wait for one another, if its members agree then. What the
  // opening names stays; it is agreed, and so is the call. Addresses that it does not name are
  // found then.
  void connect_at(std::uint64_t call, const transport::TcpTransport::Opening& opening);
  // Reductions that depend on the order of combining go from left to right in rank order.
  [[nodiscard]] bool in_order(bool rounds) const { return rounds && selector_.keeps_order(); }
  // Rank 0 says from now on, once for each way that calls go, which it is.
  void explain() { explains_ = rank_ == 0; }
  // What `watch` names stays.
  void watch(const Watch& watch) { watch_ = watch; }
  // Who serves a call of so many bytes, as a plan counts them, and how.
  [[nodiscard]] select::Choice choose(Collective as, std::uint64_t bytes, bool in_order = false);
  [[nodiscard]] select::Choice choose(const Scheduled& call);
  [[nodiscard]] const select::Selector& selector() const { return selector_; }
  // A problem of this communicator's, still without lengths.
  [[nodiscard]] coll::Problem problem(Collective as, int root = 0) const;
  // The three parts of a call. start() prepares it, advance() does what can be done now, finish()
  // tells the outcome. Neither of the first two blocks. advance() returns false when the call has
  // ended.
  PendingCall start(const Scheduled& call);
  bool advance(PendingCall& pending);
  Outcome finish(PendingCall& pending);
  // All of them: blocks until the call has ended.
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
  sched::Schedule schedule(const coll::Problem& problem, const select::Choice& by);
  [[nodiscard]] bool opens_now(Collective as) const;
  void open_connections();
  void abort(Status status, const coll::Problem& problem);
  void say(const select::Choice& choice, Collective as, std::uint64_t bytes);

  int rank_ = 0;
  select::Selector selector_;
  bool explains_ = false;
  struct Said {
    const select::Selection* selection;
    Collective as;
  };
  Array<Said> said_;
  topo::Hierarchies hierarchies_;
  transport::Stack stack_;
  transport::TcpTransport::Opening opening_;
  std::uint64_t opening_call_ = 0;  // 0: never, or it is over
  Comm* node_ = nullptr;            // the members on this node, whose team the stack uses
  shm::WaitPolicy policy_;
  void (*poke_)(void* host) = nullptr;  // the policy's, as long as the transport drives the host by itself
  Watch watch_;
  coll::Builder builder_;
  CachedProgram* entries_[kPrograms] = {};
  std::uint64_t calls_ = 0;
  char* scratch_ = nullptr;
  std::uint64_t scratch_bytes_ = 0;
};

// How to wait for the messages of schedules.
shm::WaitPolicy schedule_policy(Process& process);

// After how long a wait a call is explained; 0: never.
std::uint64_t explained_after_ns(const Process& process);

// ---- The collectives, as those of engine.hpp; arguments are good
// --------------------------------------------------------

Outcome barrier(Scheduler& scheduler);
Outcome bcast(Scheduler& scheduler, const Region& buffer, int root, bool good);
Outcome gather(Scheduler& scheduler, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool good);
Outcome scatter(Scheduler& scheduler, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool good);
Outcome allgather(Scheduler& scheduler, Collective as, const Region& send, const Blocks& receive, bool in_place,
                  bool good);
Outcome alltoall(Scheduler& scheduler, Collective as, const Blocks& send, const Blocks& receive, bool in_place,
                 bool good);

Outcome reduce(Scheduler& scheduler, const KernelArgs& vector, const KernelOp& reduction, int root);
Outcome allreduce(Scheduler& scheduler, const KernelArgs& vector, const KernelOp& reduction);
Outcome reduce_scatter(Scheduler& scheduler, Collective as, const KernelArgs& vector, const KernelOp& reduction,
                       const std::uint64_t* begins);
Outcome scan(Scheduler& scheduler, const KernelArgs& vector, const KernelOp& reduction, bool exclusive);

Outcome reduce(Scheduler& scheduler, const FunctionArgs& operands, const FunctionOp& operation, int root);
Outcome allreduce(Scheduler& scheduler, const FunctionArgs& operands, const FunctionOp& operation);
Outcome reduce_scatter(Scheduler& scheduler, Collective as, const FunctionArgs& operands, const FunctionOp& operation,
                       const std::uint64_t* begins);
Outcome scan(Scheduler& scheduler, const FunctionArgs& operands, const FunctionOp& operation, bool exclusive);

}  // namespace stretto::engine
