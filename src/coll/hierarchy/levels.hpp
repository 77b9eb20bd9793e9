// SPDX-License-Identifier: BSD-3-Clause
// One rank's groups for one call, and the emitting of flat algorithms on them.
#pragma once
#include "coll/hierarchy/compose.hpp"

namespace stretto::coll {

class Levels {
 public:
  Levels(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem, int root);

  [[nodiscard]] bool failed() const { return ranks_.failed(); }
  // Levels on which this rank is a member of a group: [0, reach).
  [[nodiscard]] int reach() const { return reach_; }
  [[nodiscard]] int top() const { return hierarchy_.levels() - 1; }
  [[nodiscard]] int group(int level) const { return hierarchy_.group_over(rank_, level); }
  [[nodiscard]] bool leads(int level) const { return groups_[level].me == leaders_[level]; }
  // Groups of one have nothing to do.
  [[nodiscard]] bool busy(int level) const { return level < reach_ && groups_[level].size > 1; }

  // A call on this rank's group of a level, rooted at its leader.
  [[nodiscard]] Call call(int level) const;
  void emit(int level, Collective collective, const Call& call);

 private:
  [[nodiscard]] HierarchyPlan::Choice choice(int level, Collective collective) const;

  Builder& builder_;
  const topo::Hierarchy& hierarchy_;
  const HierarchyPlan& plan_;
  int rank_;
  bool commutative_;
  int reach_ = 0;
  Array<int> ranks_;  // of the members of all groups
  Group groups_[topo::kMostLevels + 1];
  int leaders_[topo::kMostLevels + 1] = {};
};

// The algorithm for a group where the plan names none.
const Algorithm* default_algorithm(Collective collective);

}  // namespace stretto::coll
