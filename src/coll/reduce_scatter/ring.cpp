// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter around a ring. The sum of a part begins at the member after its owner and travels
// around to the owner. Every member adds its own contribution. A pipeline cuts the messages, and
// passes each piece on at once: for calls that return early.
//
// Cost: P - 1 messages of one part each, always to the next member. Wins for long vectors. Each sum
// begins at another member, so operations must commute.
//
// Patarasuk, Yuan 2009.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void reduce_scatter_ring(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.size == 1) {
    b.copy(call.ins.at(0), call.out);
    return;
  }
  const int next = group.rank(group.around(group.me, 1));
  const int previous = group.rank(group.around(group.me, -1));
  const std::uint64_t longest = call.ins.longest();
  // One is sent while the other arrives.
  const Slice places[2] = {b.scratch(longest), b.scratch(longest)};
  Slice sum = call.ins.at(group.around(group.me, -1));
  for (int step = 0; step < group.size - 1; ++step) {
    b.send(next, sum);
    const Slice own = call.ins.at(group.around(group.me, -step - 2 > -group.size ? -step - 2 : 0));
    const bool last = step == group.size - 2;
    sum = last ? call.out : places[step % 2].part(0, own.length);
    b.recv_reduce(previous, own, sum, sched::Side::left);
  }
}

}  // namespace stretto::coll
