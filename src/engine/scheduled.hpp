// SPDX-License-Identifier: BSD-3-Clause
// What a call by schedule is, and when its rank says that it waits. Private to src/engine.
#pragma once
#include "coll/hierarchy/compose.hpp"
#include "engine/engine.hpp"
#include "sched/execute.hpp"
#include "select/selector.hpp"
#include "topo/hosts.hpp"

namespace stretto::engine {

// One call: the problem in units, what its buffers and units are, and what was chosen for it.
struct Scheduled {
  coll::Problem problem;
  std::uint64_t unit_bytes = 1;
  const char* send = nullptr;
  char* receive = nullptr;
  sched::Combination combination{};
  select::Choice choice{};           // if it has no selection, the scheduler chooses
  char* check = nullptr;             // Buffer::check
  const KernelOp* kernel = nullptr;  // of `combination`, if it is one
  bool leaders = false;              // the call of the nodes' leaders alone (node_part.hpp)
};

// After how long a wait the rank says for which ranks it waits, and what their hosts are called.
struct Watch {
  std::uint64_t limit_ns = 0;  // 0: never
  const topo::Hosts* hosts = nullptr;
  const int* job_ranks = nullptr;  // the members' ranks in the job
  Process* process = nullptr;
  // Null: the members are on one node.
  [[nodiscard]] const char* host_of(int rank) const { return hosts != nullptr ? hosts->of(job_ranks[rank]) : nullptr; }
};

}  // namespace stretto::engine
