// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter on a circulant graph, for any number of members. A member has sums of its own part
// and of the parts of members after it. In each round it sends the further half of these (rounded
// down) to the member whose part comes first in it, and keeps the nearer half.
//
// Cost, for m units in all: ceil(log2 P) rounds. Each member sends and combines m (P - 1) / P
// units. Wins where P is no power of two: nobody waits outside, and nothing is sent twice. A
// message is cut in two where its parts lie on both ends of the buffer. Sums join members that are
// no neighbours, so operations must commute.
//
// Traeff 2024 (arXiv 2410.14234).
#include "coll/algorithms.hpp"

namespace stretto::coll {

void reduce_scatter_circulant(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.size == 1) {
    b.copy(call.ins.at(0), call.out);
    return;
  }
  const Parts work = call.ins.moved_to(b.scratch(call.ins.total()));
  const Ring places{work, group.me};
  bool first = true;
  const auto sum = [&](Slice of) {
    return first ? Slice{call.ins.buffer, call.ins.offset + (of.offset - work.offset), of.length} : of;
  };
  for (int have = group.size; have > 1; first = false) {
    const int keep = have - have / 2;
    const int ahead = group.rank(group.around(group.me, keep));
    const int behind = group.rank(group.around(group.me, -keep));
    places.each_piece(keep, have, [&](Slice piece) { b.send(ahead, sum(piece)); });
    places.each_piece(0, have - keep, [&](Slice piece) {
      b.recv_reduce(behind, sum(piece), keep == 1 ? call.out : piece, sched::Side::left);
    });
    // Nothing came for the last part of an odd number.
    if (first && have % 2 != 0) {
      const Slice last = work.at(places.member(keep - 1));
      b.copy(sum(last), last);
    }
    have = keep;
  }
}

}  // namespace stretto::coll
