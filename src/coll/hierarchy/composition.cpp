// SPDX-License-Identifier: BSD-3-Clause
#include "coll/hierarchy/composition.hpp"

namespace stretto::coll {
namespace {

bool goes_flat(const topo::Hierarchy& hierarchy, const Problem& problem) {
  if (hierarchy.keeps_rank_order()) return false;
  switch (regular_form(problem.collective)) {
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter: return !problem.commutative;
    case Collective::scan:
    case Collective::exscan: return true;
    default: return false;
  }
}

// Whether this call takes the plan's chain: it has one vector, and any order of the sum will do.
bool goes_in_line(const HierarchyPlan& plan, const Problem& problem) {
  const bool in_any_order = problem.collective == Collective::bcast || problem.commutative;
  return plan.as_chain && has_chain(problem.collective) && in_any_order;
}

void compose(Composition& c) {
  switch (regular_form(c.problem.collective)) {
    case Collective::bcast: return c.each_segment([&](const Call& call) { compose_bcast(c, call); });
    case Collective::reduce: return c.each_segment([&](const Call& call) { compose_reduce(c, call); });
    case Collective::allreduce: return c.each_segment([&](const Call& call) { compose_allreduce(c, call); });
    case Collective::scan:
    case Collective::exscan: return c.each_segment([&](const Call& call) { compose_scan(c, call); });
    case Collective::barrier: return compose_barrier(c);
    case Collective::gather: return compose_gather(c);
    case Collective::scatter: return compose_scatter(c);
    case Collective::allgather: return compose_allgather(c);
    case Collective::reduce_scatter: return compose_reduce_scatter(c);
    case Collective::alltoall: return compose_alltoall(c);
    default: return compose_flat(c);
  }
}

}  // namespace

Composition::Composition(Builder& builder, const topo::Hierarchy& of, const HierarchyPlan& with, const Problem& call_of)
    : b(builder),
      hierarchy(of),
      plan(with),
      problem(call_of),
      whole(whole_call(builder, call_of, {})),
      root(has_root(call_of.collective) ? call_of.root : of.leader(of.group_on(of.levels() - 1, 0))),
      levels(builder, of, with, call_of, Lead(of, root)) {
  if (levels.failed()) b.fail();
}

void Composition::down(Levels& by, int from, int to, Slice in, Slice out) {
  for (int level = from; level >= to && level >= plan.lowest; --level) {
    if (!by.busy(level)) continue;
    Call call = by.call(level);
    call.in = in;
    call.out = out;
    by.emit(level, Collective::bcast, call);
    in = out;
  }
}

Slice Composition::up(Levels& by, int to, Slice in, Slice out, bool may_write) {
  Slice sum = in;
  Slice own = out;
  bool has_own = may_write;
  for (int level = plan.lowest; level < to; ++level) {
    if (!by.busy(level)) continue;
    Call call = by.call(level);
    if (by.leads(level) && !has_own) {
      own = b.scratch(in.length);
      has_own = true;
    }
    call.in = sum;
    call.out = own;
    by.emit(level, Collective::reduce, call);
    if (by.leads(level)) sum = own;
  }
  return sum;
}

void Composition::up_to_root(Levels& by, Slice in, Slice out) {
  const int head = by.lead().head();
  const Slice sum = up(by, by.top() + 1, in, out, is_root());
  if (problem.rank == head && !is_root()) b.send(root, sum);
  if (!is_root()) return;
  if (head == root)
    b.copy(sum, out);
  else
    b.recv(head, out);
}

int Composition::top_led() const {
  int group = -1;
  for (int level = 0; level < levels.reach() && levels.leads(level); ++level) group = levels.group(level);
  return group;
}

void compose_flat(Composition& c) {
  const Algorithm* const algorithm = default_algorithm(c.problem.collective, c.problem.size, c.problem.commutative);
  Call call = c.whole;
  call.parameters.segments = c.plan.segments;
  emit_segments(c.b, *algorithm, call);
  finish_in_place(c.b, c.problem, call);
}

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan,
                            const Problem& problem) {
  Composition composition(builder, hierarchy, plan, problem);
  if (goes_flat(hierarchy, problem)) {
    compose_flat(composition);
  } else if (goes_in_line(plan, problem)) {
    compose_as_chain(composition);
  } else {
    compose(composition);
  }
  return builder.finish();
}

}  // namespace stretto::coll
