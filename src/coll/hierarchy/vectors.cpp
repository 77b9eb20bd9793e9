// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in its three forms, and the barrier.
#include "coll/hierarchy/composition.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::coll {
namespace {

// Allreduce of one part of the vector over the rail-th ranks of all nodes.
void across(Composition& c, int rail, Slice vector) {
  const int nodes = c.hierarchy.groups_on(c.plan.node_level);
  Array<int> ranks;
  Call call = c.whole;
  for (int i = 0; i < nodes; ++i) {
    const int rank = c.hierarchy.order()[c.hierarchy.order_begin(c.hierarchy.group_on(c.plan.node_level, i)) + rail];
    if (rank == c.problem.rank) call.group.me = i;
    ranks.push(rank);
  }
  if (ranks.failed()) return c.b.fail();
  call.group.size = nodes;
  call.group.ranks = ranks.data();
  call.in = call.out = vector;
  c.levels.emit(c.levels.top(), Collective::allreduce, call);
}

// As many parts as the smallest node has ranks; the i-th is the business of the i-th rank of every node.
void rails(Composition& c, const Call& vector) {
  const int level = c.plan.node_level;
  const int group = c.levels.group(level);
  const int begin = c.hierarchy.order_begin(group);
  int parts = c.hierarchy.ranks();
  for (int i = 0; i < c.hierarchy.groups_on(level); ++i) {
    const int size = c.hierarchy.under(c.hierarchy.group_on(level, i));
    parts = size < parts ? size : parts;
  }
  Call call = c.whole;
  call.group = {c.hierarchy.under(group), c.hierarchy.position(c.problem.rank) - begin, c.hierarchy.order().data() + begin};
  for (int i = 0; i < parts; ++i) {
    const Slice out = piece(vector.out, static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(i));
    call.root = i;
    call.in = piece(vector.in, static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(i));
    call.out = out;
    c.levels.emit(level, Collective::reduce, call);
    if (call.group.me == i) across(c, i, out);
    call.in = out;
    c.levels.emit(level, Collective::bcast, call);
  }
}

// From all members of a level's group to the leader, or back, by a binomial tree.
void signals(Composition& c, int level, bool upwards) {
  const Call call = c.levels.call(level);
  const Group places = call.group.counted_from(call.root);
  const Tree tree = Tree::knomial(places.size, 2);
  const int parent = tree.parent(places.me);
  c.b.fence();
  if (!upwards && parent >= 0) c.b.await(places.rank(parent));
  c.b.fence();
  tree.each_child(places.me, [&](int child) { upwards ? c.b.await(places.rank(child)) : c.b.signal(places.rank(child)); });
  c.b.fence();
  if (upwards && parent >= 0) c.b.signal(places.rank(parent));
}

}  // namespace

void compose_allreduce(Composition& c, const Call& vector) {
  const int top = c.levels.top();
  if (c.plan.form == AllreduceForm::rails && c.plan.node_level < top) return rails(c, vector);
  if (c.plan.form == AllreduceForm::reduce_bcast) {
    const Slice sum = c.up(top + 1, vector.in, vector.out, true);
    if (c.is_root()) c.b.copy(sum, vector.out);
    return c.down(top, vector.out, vector.out);
  }
  const Slice sum = c.up(top, vector.in, vector.out, true);
  if (c.levels.busy(top)) {
    Call call = c.levels.call(top);
    call.in = sum;
    call.out = vector.out;
    c.levels.emit(top, Collective::allreduce, call);
  } else if (c.levels.reach() > top) {
    c.b.copy(sum, vector.out);
  }
  c.down(top - 1, vector.out, vector.out);
}

void compose_barrier(Composition& c) {
  const int top = c.levels.top();
  for (int level = 0; level < top; ++level) {
    if (c.levels.busy(level)) signals(c, level, true);
  }
  if (c.levels.busy(top)) {
    c.b.fence();
    c.levels.emit(top, Collective::barrier, c.levels.call(top));
  }
  for (int level = top - 1; level >= 0; --level) {
    if (c.levels.busy(level)) signals(c, level, false);
  }
}

}  // namespace stretto::coll
