// SPDX-License-Identifier: BSD-3-Clause
// Scan along a chain. A member combines the sum of the member before it with its own contribution
// and sends the result on. A pipeline cuts the messages: for calls that return early.
//
// Cost: P - 1 messages of the vector, one after the other. In segments: (P - 1)(t(s) + c(s)) + (S -
// 1) max(g, c). Wins for long vectors.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void scan_chain(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.me == 0) {
    b.copy(call.in, call.out);
  } else {
    b.recv_reduce(group.rank(group.me - 1), call.in, call.out, sched::Side::left);
  }
  if (group.me + 1 < group.size) b.send(group.rank(group.me + 1), group.me == 0 ? call.in : call.out);
}

}  // namespace stretto::coll
