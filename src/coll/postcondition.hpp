// SPDX-License-Identifier: BSD-3-Clause
// What each collective must do, in the verifier's words: which contributions are where before it,
// and which must be where afterwards. It is written from the MPI standard, not from the algorithms.
// The verifier uses it; it is not in the preload library.
#pragma once
#include <functional>

#include "coll/algorithm.hpp"
#include "coll/hierarchy/compose.hpp"
#include "sched/verify.hpp"

namespace stretto::coll {

// A collective call of a whole job: `problem` as rank 0 has it, and the lengths of the parts for
// the v-forms.
struct Job {
  Problem problem;
  std::vector<std::uint64_t> begins;  // of the parts; empty: equal parts
  // alltoallv: units from rank i to rank j at [i * size + j]. Empty: equal parts.
  std::vector<std::uint64_t> exchanged;

  [[nodiscard]] bool is_rooted() const;
  [[nodiscard]] bool is_reduction() const;
};

// The problem as `rank` sees it. Valid until the next call of of().
class View {
 public:
  explicit View(const Job& job) : job_(job) {}
  const Problem& of(int rank);

 private:
  const Job& job_;
  Problem problem_;
  std::vector<std::uint64_t> received_, sent_;
};

// The composition of one rank of the job. If the plan's form is by carriers, the ranks of a node
// have told them the lengths of their parts.
Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan,
                            const Job& job, const Problem& problem);

using BuildRank = std::function<Schedule(const Problem&)>;
// Builds the schedules of all ranks, executes them and compares. False: the verifier's failure()
// says why.
bool keeps_promise(sched::Verifier& verifier, const Job& job, const BuildRank& build_rank);

}  // namespace stretto::coll
