// SPDX-License-Identifier: BSD-3-Clause
// Gather, scatter, allgather, reduce_scatter: parts travel packed in the order of the tree of
// groups.
#include "coll/hierarchy/composition.hpp"

namespace stretto::coll {
namespace {

// Collects parts on the levels below `to`. Returns where the parts are that this rank has then.
Slice gather_up(Composition& c, int to, Packed& packed) {
  Slice mine = c.whole.in;
  for (int level = 0; level < to; ++level) {
    if (!c.levels.busy(level)) continue;
    Call call = c.levels.call(level);
    call.in = mine;
    if (!packed.parts_of(c.levels.group(level), &call.outs)) return c.b.fail(), mine;
    c.levels.emit(level, Collective::gather, call);
    if (c.levels.leads(level)) mine = call.outs.all();
  }
  return mine;
}

// From the root's parts `ins` to every rank's `out`. `keep`: the root's own part is where it
// belongs.
void scatter_down(Composition& c, const Parts& ins, Slice out, bool keep) {
  Packed packed(c.b, c.hierarchy, ins, c.is_root(), c.top_led());
  Slice mine = c.is_root() ? packed.pack(ins) : out;
  for (int level = c.levels.top(); level >= 0; --level) {
    if (!c.levels.busy(level)) continue;
    Call call = c.levels.call(level);
    if (!packed.parts_of(c.levels.group(level), &call.ins)) return c.b.fail();
    if (level > 0) {
      call.out = packed.of_group(c.levels.group(level - 1));
    } else {
      call.out = keep ? packed.of_rank(c.problem.rank) : out;
    }
    c.levels.emit(level, Collective::scatter, call);
    mine = call.out;
  }
  if (!keep) c.b.copy(mine, out);
}

}  // namespace

void compose_gather(Composition& c) {
  Packed packed(c.b, c.hierarchy, c.whole.outs, c.is_root(), c.top_led());
  const Slice mine = gather_up(c, c.levels.top() + 1, packed);
  if (c.is_root()) packed.unpack(mine, c.whole.outs);
}

void compose_scatter(Composition& c) { scatter_down(c, c.whole.ins, c.whole.out, c.problem.in_place && c.is_root()); }

void compose_allgather(Composition& c) {
  const int top = c.levels.top();
  Packed packed(c.b, c.hierarchy, c.whole.outs, true, c.top_led());
  const Slice mine = gather_up(c, top, packed);
  if (c.levels.busy(top)) {
    Call call = c.levels.call(top);
    call.in = mine;
    if (!packed.parts_of(c.levels.group(top), &call.outs)) return c.b.fail();
    c.levels.emit(top, Collective::allgather, call);
  } else if (c.levels.reach() > top) {
    c.b.copy(mine, packed.all());
  }
  c.down(c.levels, top - 1, 0, packed.all(), packed.all());
  packed.unpack(packed.all(), c.whole.outs);
}

void compose_reduce_scatter(Composition& c) {
  const Slice in = c.whole.ins.all();
  const Slice sum = c.is_root() ? c.b.scratch(in.length) : Slice{};
  c.up_to_root(c.levels, in, sum);
  scatter_down(c, c.whole.ins.moved_to(sum), c.whole.out, false);
  finish_in_place(c.b, c.problem, c.whole);
}

}  // namespace stretto::coll
