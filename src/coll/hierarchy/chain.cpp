// SPDX-License-Identifier: BSD-3-Clause
// Vectors along a chain of all ranks. Its order is that of the tree of groups, but the root comes
// first, and on every level its group comes before all others.
//
// A pipeline along the chain leaves every group once and enters every other one once. So each link
// carries the vector once in one direction. No port sends it twice, as the port of a leader does
// that serves two levels.
//
// Halving and doubling along the chain sends 2 (G - 1) / G vectors out of each of a level's G
// groups. Shares need no less. This holds if halves of the chain never cut a group
// (topo::Hierarchy::splits_in_halves).
#include "coll/hierarchy/composition.hpp"

namespace stretto::coll {
namespace {

// Brings [begin, end) to the front. What was before it follows.
void bring_forward(Array<int>& ranks, Array<int>& aside, int begin, int end) {
  aside.clear();
  for (int i = 0; i < begin; ++i) aside.push(ranks[i]);
  for (int i = begin; i < end; ++i) ranks[i - begin] = ranks[i];
  for (int i = 0; i < begin && !aside.failed(); ++i) ranks[end - begin + i] = aside[i];
}

// False: no memory.
bool chain_from(const topo::Hierarchy& hierarchy, int root, Array<int>& chain) {
  Array<int> aside;
  for (const int rank : hierarchy.order()) chain.push(rank);
  if (chain.failed() || !aside.reserve(chain.size())) return false;
  // After each level, the root's group on it begins with the part that the root is in.
  for (int level = hierarchy.levels() - 1; level >= 0; --level) {
    const int group = hierarchy.group_over(root, level);
    const int part = level > 0 ? hierarchy.group_over(root, level - 1) : -1;
    const int begin = level > 0 ? hierarchy.order_begin(part) : hierarchy.position(root);
    const int before = begin - hierarchy.order_begin(group);
    bring_forward(chain, aside, before, before + (level > 0 ? hierarchy.under(part) : 1));
  }
  return true;
}

}  // namespace

bool has_chain(Collective collective) {
  return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::allreduce;
}

void compose_as_chain(Composition& c) {
  Array<int> chain;
  if (!chain_from(c.hierarchy, c.root, chain)) return c.b.fail();
  const Collective collective = c.problem.collective;
  const bool two_ways = collective == Collective::allreduce && c.plan.form == Form::reduce_bcast;
  Group group{static_cast<int>(chain.size()), 0, chain.data()};
  while (chain[group.me] != c.problem.rank) ++group.me;
  c.each_segment([&](Call call) {
    call.group = group;
    call.root = 0;
    c.levels.emit(c.levels.top(), two_ways ? Collective::reduce : collective, call);
    if (!two_ways) return;
    call.in = call.out;
    c.levels.emit(c.levels.top(), Collective::bcast, call);
  });
}

}  // namespace stretto::coll
