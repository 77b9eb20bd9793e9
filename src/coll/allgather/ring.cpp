// SPDX-License-Identifier: BSD-3-Clause
// Allgather around a ring: in every step a member sends the part that it received last to the next
// member.
//
// Cost: P - 1 messages of one part each, always to the next member. Wins for long parts, and for
// parts of different lengths. A pipeline cuts these messages, and brings one part after the other:
// for calls that return early.
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void allgather_ring(Builder& b, const Call& call) {
  const Group& group = call.group;
  const int next = group.rank(group.around(group.me, 1));
  const int previous = group.rank(group.around(group.me, -1));
  b.copy(call.in, call.outs.at(group.me));
  for (int step = 0; step < group.size - 1; ++step) {
    b.send(next, step == 0 ? call.in : call.outs.at(group.around(group.me, -step)));
    b.recv(previous, call.outs.at(group.around(group.me, -step - 1)));
  }
}

}  // namespace stretto::coll
