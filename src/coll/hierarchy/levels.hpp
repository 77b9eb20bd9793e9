// SPDX-License-Identifier: BSD-3-Clause
// One rank's groups for one call, or for one stripe of its vectors. Emits flat algorithms on them.
#pragma once
#include "coll/hierarchy/compose.hpp"

namespace stretto::coll {

// Which rank leads a group. In a call, the root leads every group that it is in. The hierarchy says
// who leads the others. In a stripe, one rank of each node, its carrier, leads every group that it
// is in; so it takes the stripe across the network. Where carriers belong to cards, the root takes
// the place of one of them.
class Lead {
 public:
  Lead(const topo::Hierarchy& hierarchy, int root) : hierarchy_(hierarchy), root_(root), head_(root) {}
  // The stripe-th of `stripes` stripes, in the plan's form.
  Lead(const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, int root, int stripe, int stripes);
  // The same, but the root leads every group that it is in.
  [[nodiscard]] Lead by_root() const;

  // The rank that leads every group that it is in, up to the top: the root, or the carrier of its
  // node.
  [[nodiscard]] int head() const { return head_; }
  [[nodiscard]] int leader(int group) const;
  // Calls `visit(rank)` for the members of a group of a level.
  template <class Visit>
  void each_member(int group, int level, Visit visit) const;

 private:
  [[nodiscard]] int carrier(int node) const;

  const topo::Hierarchy& hierarchy_;
  int root_;
  int head_;
  int stripe_ = 0, stripes_ = 0;  // 0: the call is not striped
  int node_level_ = 0;
  // Every rank is a carrier. There are nodes, and a top of all nodes, but no other levels.
  bool rails_ = false;
};

class Levels {
 public:
  Levels(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem,
         const Lead& lead);

  [[nodiscard]] bool failed() const { return ranks_.failed(); }
  // Levels on which this rank is a member of a group: [0, reach).
  [[nodiscard]] int reach() const { return reach_; }
  [[nodiscard]] int top() const { return hierarchy_.levels() - 1; }
  [[nodiscard]] int group(int level) const { return hierarchy_.group_over(rank_, level); }
  [[nodiscard]] bool leads(int level) const { return groups_[level].me == leaders_[level]; }
  [[nodiscard]] const Lead& lead() const { return lead_; }
  // A group of one has nothing to do.
  [[nodiscard]] bool busy(int level) const { return level < reach_ && groups_[level].size > 1; }

  // A call on this rank's group of a level, rooted at its leader.
  [[nodiscard]] Call call(int level) const;
  void emit(int level, Collective collective, const Call& call);

 private:
  [[nodiscard]] HierarchyPlan::Choice choice(int level, Collective collective) const;

  Builder& builder_;
  const topo::Hierarchy& hierarchy_;
  const HierarchyPlan& plan_;
  const Lead lead_;
  int rank_;
  bool commutative_;
  int reach_ = 0;
  Array<int> ranks_;  // the members of all groups
  Group groups_[topo::kMostLevels + 1];
  int leaders_[topo::kMostLevels + 1] = {};
};

// The algorithm for a group where the plan names none.
const Algorithm* default_algorithm(Collective collective, int members, bool commutative);

}  // namespace stretto::coll
