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
// Members without a part form a node with the next one that has a part: its *owner*. A sum passes
// all members of the owner's node last. Its result goes to these members first, then on around the
// ring. So each link between nodes carries 2 (N - 1) / N of the vector, for N nodes, however many
// members they have:
//
//   node      ...  |  b  b  b  |  c  c  owner  |  d  d  d  |  ...
//   sum                  ---->   -------> .      begins here ----> around the ring
//   result         .---- on --------------.
//                  the owner, then its node from the first member on, then d ... b
//
// Patarasuk, Yuan 2009.
#include "coll/algorithms.hpp"
#include "coll/phase/by_parts.hpp"

namespace stretto::coll {
namespace {

// The way of a result: position 0 is the owner, then the `others` members of its node, which stand
// before it, then the members behind it.
struct ResultWay {
  const Group& group;
  int owner, others;

  [[nodiscard]] int rank(int position) const {
    const int distance = position == 0 ? 0 : position <= others ? position - others - 1 : position - others;
    return group.rank(group.around(owner, distance));
  }
  [[nodiscard]] int position_of(int member) const {
    const int distance = group.around(member, -owner);  // behind the owner
    const int behind = group.size - 1 - others;
    return distance == 0 ? 0 : distance <= behind ? distance + others : distance - behind;
  }
};

}  // namespace

void allreduce_ring(Builder& b, const Call& call) { allreduce_by_parts(b, call, reduce_scatter_ring, allgather_ring); }

// The sum of a part begins at the member after its owner. The owner gets it last.
void allreduce_ring_in_order(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.size == 1) {
    b.copy(call.in, call.out);
    return;
  }
  const int next = group.rank(group.around(group.me, 1));
  const int previous = group.rank(group.around(group.me, -1));
  Parts ins = call.ins;
  if (ins.begins == nullptr) ins = Parts::deal(call.in, group.size, group.size, b.grain());
  const Parts outs = ins.moved_to(call.out);
  for (int part = 0, node = 0; part < group.size; ++part) {
    const Slice own = ins.at(part);
    if (own.length == 0) continue;
    const bool owns = part == group.me, begins = part == group.around(group.me, -1);
    const Slice sum = owns ? outs.at(part) : b.scratch(own.length);
    if (!begins) b.recv_reduce(previous, own, sum, sched::Side::left);
    if (!owns) b.send(next, begins ? own : sum);
    const ResultWay way{group, part, part - node};
    const int position = way.position_of(group.me);
    if (!owns) b.recv(way.rank(position - 1), outs.at(part));
    if (position < group.size - 1) b.send(way.rank(position + 1), outs.at(part));
    node = part + 1;
  }
}

}  // namespace stretto::coll
