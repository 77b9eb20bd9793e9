// SPDX-License-Identifier: BSD-3-Clause
// Collectives of one communicator as schedules (coll/hierarchy): which hierarchy its ranks form, which plan a call goes by,
// and the programs of the shapes that were called last. Knows no MPI: messages go by a transport.
//
// The plan is a function of what all ranks know: collective, length, hierarchy. So is a call's schedule, but for MPI_IN_PLACE,
// which changes copies only.
#pragma once
#include "coll/hierarchy/compose.hpp"
#include "engine/engine.hpp"
#include "sched/execute.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::engine {

// One call: the problem in units, and what its buffers and units are.
struct Scheduled {
  coll::Problem problem;
  std::uint64_t unit_bytes = 1;
  const char* send = nullptr;
  char* receive = nullptr;
  sched::Combination combination{};
};

class Scheduler {
 public:
  // False: no memory.
  bool start(const topo::Placement& placement, const topo::LevelChoice& choice, const sched::Transport& transport,
             const shm::WaitPolicy& policy);
  ~Scheduler();

  Outcome run(Collective as, const Scheduled& call);
  [[nodiscard]] const topo::Hierarchy& hierarchy() const { return hierarchy_; }

  static constexpr int kPrograms = 16;

 private:
  struct Entry;

  Entry* program_of(const coll::Problem& problem, std::uint64_t unit_bytes);
  Entry* oldest();
  bool build(Entry& entry, const coll::Problem& problem, std::uint64_t unit_bytes);
  char* scratch(std::uint64_t bytes);

  topo::Hierarchy hierarchy_;
  sched::Transport transport_;
  shm::WaitPolicy policy_;
  coll::Builder builder_;
  Entry* entries_[kPrograms] = {};
  std::uint64_t calls_ = 0;
  char* scratch_ = nullptr;
  std::uint64_t scratch_bytes_ = 0;
};

// How to wait for the messages of schedules, whose transport drives the host by itself.
shm::WaitPolicy schedule_policy(const Process& process);

// How a call of `bytes` bytes goes over a hierarchy. The same on all ranks.
coll::HierarchyPlan plan_for(const topo::Hierarchy& hierarchy, Collective collective, std::uint64_t bytes);

}  // namespace stretto::engine
