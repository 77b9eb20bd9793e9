// SPDX-License-Identifier: BSD-3-Clause
// Allreduce around a ring: P - 1 steps that combine, then P - 1 that distribute. Each step sends
// one part of the vector to the next member. In segments the rings follow each other.
//
// Cost, for m units: 2 (P - 1) messages of m / P units, always between neighbours. Each member
// sends 2 m (P - 1) / P units and combines m (P - 1) / P. Wins for vectors so long that latency
// does not count. Sums begin at different members, so operations must commute.
//
// A pipeline sends the same messages in another order, and cuts them: for calls that return early.
// Every member handles part 0 first, there and back around the ring, then part 1. So results come
// from the vector's begin to its end, as most programs read them. In turn, every link carries two
// messages of the first part, but of some parts one only: the next part's fills the gap.
//
// Patarasuk, Yuan 2009.
#include "coll/algorithms.hpp"
#include "coll/phase/by_parts.hpp"

namespace stretto::coll {

void allreduce_ring(Builder& b, const Call& call) { allreduce_by_parts(b, call, reduce_scatter_ring, allgather_ring); }

// The sum of a part begins at the member after its owner. The owner gets it last, and sends it
// around once more.
void allreduce_ring_in_order(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.size == 1) {
    b.copy(call.in, call.out);
    return;
  }
  const int next = group.rank(group.around(group.me, 1));
  const int previous = group.rank(group.around(group.me, -1));
  const Parts ins = Parts::deal(call.in, group.size, group.size, b.grain()), outs = ins.moved_to(call.out);
  for (int part = 0; part < group.size; ++part) {
    const bool owns = part == group.me, begins = part == group.around(group.me, -1);
    const Slice own = ins.at(part), sum = owns ? outs.at(part) : b.scratch(own.length);
    if (!begins) b.recv_reduce(previous, own, sum, sched::Side::left);
    b.send(next, begins ? own : sum);
    if (owns) continue;
    b.recv(previous, outs.at(part));
    if (part != group.around(group.me, 1)) b.send(next, outs.at(part));
  }
}

}  // namespace stretto::coll
