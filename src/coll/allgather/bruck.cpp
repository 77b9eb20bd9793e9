// SPDX-License-Identifier: BSD-3-Clause
// Allgather by doubling distances around the ring. In round j a member has 2^j parts, its own and
// those of the members after it. It sends them to the member 2^j before it.
//
// Cost, for parts of m units: ceil(log2 P) rounds, (P - 1) m sent and received. Wins for short
// parts and any number of members. Parts go straight to their places. A message is cut in two where
// its parts lie on both ends of the buffer.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby 1997; without its final rotation.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void allgather_bruck(Builder& b, const Call& call) {
  const Group& group = call.group;
  const Ring parts{call.outs, group.me};
  b.copy(call.in, call.outs.at(group.me));
  for (int distance = 1; distance < group.size; distance *= 2) {
    const int count = distance < group.size - distance ? distance : group.size - distance;
    const int before = group.rank(group.around(group.me, -distance));
    const int behind = group.rank(group.around(group.me, distance));
    parts.each_piece(0, count, [&](Slice piece) { b.send(before, piece); });
    parts.each_piece(distance, distance + count, [&](Slice piece) { b.recv(behind, piece); });
  }
}

}  // namespace stretto::coll
