// SPDX-License-Identifier: BSD-3-Clause
// The groups of a communicator's ranks, by plan. Communicators whose ranks are bound alike, such as
// duplicates, have the same ones: a process keeps them once. Private to src/engine.
#pragma once
#include "base/array.hpp"
#include "topo/groups.hpp"

namespace stretto::engine {

struct GroupSets {
  // What they follow from.
  int rank = 0, most_members = 0;
  Array<topo::Binding> bindings;

  // Those of `ranked` are neighbours: there are some where the others do not keep the order of
  // ranks.
  topo::Groups placed, deep, ranked, rails;
  unsigned users = 0;  // communicators
  GroupSets* next = nullptr;
};

// For one more communicator, from a list of those that there are. Without memory for so few words a
// rank cannot go on: the others use the tiers.
GroupSets& group_sets_take(GroupSets*& list, int rank, int most_members, Array<topo::Binding>& bindings);
// A communicator has ended. The last one's end frees them.
void group_sets_give_back(GroupSets*& list, GroupSets* sets);

}  // namespace stretto::engine
