// SPDX-License-Identifier: BSD-3-Clause
// Exscan by doubling distances. Every member sends its contribution to the next one. The members
// from the second on scan what they received.
//
// Cost: 1 + ceil(log2(P - 1)) rounds of one message of the vector each. Wins for short vectors.
// Order is kept.
//
// After Hillis, Steele 1986.
#include "coll/phase/doubling.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {

void exscan_doubling(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.me + 1 < group.size) b.send(group.rank(group.me + 1), call.in);
  if (group.me == 0) return;
  const Slice shifted = b.scratch(call.in.length);
  b.recv(group.rank(group.me - 1), shifted);
  scan_by_doubling(b, group, 1, shifted, call.out);
}

}  // namespace stretto::coll
