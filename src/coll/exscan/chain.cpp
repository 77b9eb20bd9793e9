// SPDX-License-Identifier: BSD-3-Clause
// Exscan along a chain. What arrives is a member's result. The member combines it with its own
// contribution and sends that on.
//
// Cost: as scan/chain.cpp, and a copy of the contribution.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void exscan_chain(Builder& b, const Call& call) {
  const Group& group = call.group;
  const bool last = group.me + 1 == group.size;
  Slice sum = call.in;
  if (group.me > 0 && !last) {
    sum = b.scratch(call.in.length);
    b.copy(call.in, sum);
  }
  if (group.me > 0) b.recv(group.rank(group.me - 1), call.out);
  if (group.me > 0 && !last) b.reduce(call.out, sum, sched::Side::left);
  if (!last) b.send(group.rank(group.me + 1), sum);
}

}  // namespace stretto::coll
