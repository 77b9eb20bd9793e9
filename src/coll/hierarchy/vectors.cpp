// SPDX-License-Identifier: BSD-3-Clause
// Bcast, reduce, allreduce in their forms, and the barrier.
#include "coll/hierarchy/composition.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::coll {
namespace {

// Signals from all members of a level's group to the leader, or back, along a binomial tree.
void signals(Composition& c, int level, bool upwards) {
  const Call call = c.levels.call(level);
  const Group places = call.group.counted_from(call.root);
  const Tree tree = Tree::knomial(places.size, 2);
  const int parent = tree.parent(places.me);
  c.b.fence();
  if (!upwards && parent >= 0) c.b.await(places.rank(parent));
  c.b.fence();
  tree.each_child(places.me,
                  [&](int child) { upwards ? c.b.await(places.rank(child)) : c.b.signal(places.rank(child)); });
  c.b.fence();
  if (upwards && parent >= 0) c.b.signal(places.rank(parent));
}

// Every rank of a node has the node's sum of one stripe, carries it across the network, and gives
// the result to the others. Where nodes differ in size, ranks beyond the number of the smallest
// node have no stripe.
void allreduce_by_rails(Composition& c, const Call& vector, int stripes) {
  const int node = c.plan.node_level, top = c.levels.top();
  const int place = c.hierarchy.position(c.problem.rank) - c.hierarchy.order_begin(c.levels.group(node));
  Levels by(c.b, c.hierarchy, c.plan, c.problem,
            Lead(c.hierarchy, c.plan, c.root, place < stripes ? place : 0, stripes));
  if (by.failed()) return c.b.fail();
  Call inside = by.call(node);
  const Parts sums = Parts::deal(vector.out, inside.group.size, stripes);
  inside.ins = sums.moved_to(vector.in);
  inside.outs = sums;
  inside.in = inside.out = sums.at(place);
  if (by.busy(node))
    by.emit(node, Collective::reduce_scatter, inside);
  else
    c.b.copy(vector.in, vector.out);
  if (by.busy(top)) {
    Call across = by.call(top);
    across.in = across.out = inside.out;
    by.emit(top, Collective::allreduce, across);
  }
  if (by.busy(node)) by.emit(node, Collective::allgather, inside);
}

}  // namespace

bool has_form(Collective collective, Form form) {
  if (is_neighborhood(collective)) return false;
  switch (form) {
    case Form::reduce_bcast:
    case Form::rails: return collective == Collective::allreduce;
    case Form::stripes:
      return collective == Collective::bcast || collective == Collective::reduce || collective == Collective::allreduce;
    case Form::carriers: return collective == Collective::alltoallv || collective == Collective::alltoallw;
    default: return true;
  }
}

int stripe_count(const topo::Hierarchy& hierarchy, const HierarchyPlan& plan) {
  const bool rails = plan.form == Form::rails;
  if ((!rails && plan.form != Form::stripes) || plan.node_level >= hierarchy.levels() - 1) return 0;
  int least = hierarchy.ranks();
  for (int i = 0; i < hierarchy.groups_on(plan.node_level); ++i) {
    const int node = hierarchy.group_on(plan.node_level, i);
    const int carriers = rails ? hierarchy.under(node) : hierarchy.carriers(node);
    least = carriers < least ? carriers : least;
  }
  return least;
}

void compose_bcast(Composition& c, const Call& vector) {
  const int top = c.levels.top(), node = c.plan.node_level;
  c.each_stripe(vector, [&](Levels& by, const Call& stripe) {
    const bool home = c.levels.group(node) == c.hierarchy.group_over(c.root, node);
    if (by.lead().head() == c.root || !home) return c.down(by, top, 0, stripe.in, stripe.out);
    // The node's carrier receives the stripe from the root, too.
    Levels inside(c.b, c.hierarchy, c.plan, c.problem, by.lead().by_root());
    if (inside.failed()) return c.b.fail();
    c.down(inside, node, 0, stripe.in, stripe.out);
    c.down(by, top, node + 1, stripe.out, stripe.out);
  });
}

void compose_reduce(Composition& c, const Call& vector) {
  c.each_stripe(vector, [&](Levels& by, const Call& stripe) { c.up_to_root(by, stripe.in, stripe.out); });
}

void compose_allreduce(Composition& c, const Call& vector) {
  const int top = c.levels.top();
  if (c.plan.form == Form::reduce_bcast) {
    const Slice sum = c.up(c.levels, top + 1, vector.in, vector.out, true);
    if (c.is_root()) c.b.copy(sum, vector.out);
    return c.down(c.levels, top, 0, vector.out, vector.out);
  }
  const int stripes = stripe_count(c.hierarchy, c.plan);
  if (c.plan.form == Form::rails && stripes != 0) return allreduce_by_rails(c, vector, stripes);
  c.each_stripe(vector, [&](Levels& by, const Call& stripe) {
    const Slice sum = c.up(by, top, stripe.in, stripe.out, true);
    if (by.busy(top)) {
      Call call = by.call(top);
      call.in = sum;
      call.out = stripe.out;
      by.emit(top, Collective::allreduce, call);
    } else if (by.reach() > top) {
      c.b.copy(sum, stripe.out);
    }
    c.down(by, top - 1, 0, stripe.out, stripe.out);
  });
}

void compose_barrier(Composition& c) {
  const int top = c.levels.top();
  for (int level = c.plan.lowest; level < top; ++level) {
    if (c.levels.busy(level)) signals(c, level, true);
  }
  if (c.levels.busy(top)) {
    c.b.fence();
    c.levels.emit(top, Collective::barrier, c.levels.call(top));
  }
  for (int level = top - 1; level >= c.plan.lowest; --level) {
    if (c.levels.busy(level)) signals(c, level, false);
  }
}

}  // namespace stretto::coll
