// SPDX-License-Identifier: BSD-3-Clause
// Alltoall in log2 P rounds. A part has to travel d members around the ring. It goes in jumps of
// the powers of two that d consists of, together with all others that make the same jump.
//
// Cost, for parts of m units: ceil(log2 P) messages of about m P / 2 units. Every part is copied
// once for each jump and once at the end. Wins for short parts. Equal parts only: a part that
// passes through does not tell its length.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby 1997.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void alltoall_bruck(Builder& b, const Call& call) {
  const Group& group = call.group;
  Array<Slice> travelling;  // where the part lies that has this distance to go
  for (int distance = 0; distance < group.size; ++distance) {
    travelling.push(call.ins.at(group.around(group.me, distance)));
  }
  if (travelling.failed()) return b.fail();
  for (int jump = 1; jump < group.size; jump *= 2) {
    std::uint64_t units = 0;
    for (int d = 0; d < group.size; ++d) units += d & jump ? travelling[d].length : 0;
    const Slice packed = b.scratch(units);
    const Slice arrived = b.scratch(units);
    std::uint64_t at = 0;
    for (int d = 0; d < group.size; ++d) {
      if (!(d & jump)) continue;
      const std::uint64_t length = travelling[d].length;
      b.copy(travelling[d], packed.part(at, length));
      travelling[d] = arrived.part(at, length);
      at += length;
    }
    b.send(group.rank(group.around(group.me, jump)), packed);
    b.recv(group.rank(group.around(group.me, -jump)), arrived);
  }
  for (int d = 0; d < group.size; ++d) b.copy(travelling[d], call.outs.at(group.around(group.me, -d)));
}

}  // namespace stretto::coll
