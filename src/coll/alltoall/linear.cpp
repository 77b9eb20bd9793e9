// SPDX-License-Identifier: BSD-3-Clause
// Alltoall by direct messages. Every member begins with its neighbour, so no member is the first
// target of all others.
//
// Cost: P - 1 messages of one part each, every part sent once.
//   linear     all at once, or `window` exchanges at a time: wins for parts of middle length
//   pairwise   one exchange after the other: wins for long parts, as no two of them share a
//              member's port
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {
namespace {

void exchange(Builder& b, const Call& call, int in_flight) {
  const Group& group = call.group;
  b.copy(call.ins.at(group.me), call.outs.at(group.me));
  Window window(b, in_flight);
  for (int distance = 1; distance < group.size; ++distance) {
    const int to = group.around(group.me, distance);
    const int from = group.around(group.me, -distance);
    window.admit([&] { return b.send(group.rank(to), call.ins.at(to)); },
                 [&] { return b.recv(group.rank(from), call.outs.at(from)); });
  }
}

}  // namespace

void alltoall_linear(Builder& b, const Call& call) { exchange(b, call, call.parameters.window); }
void alltoall_pairwise(Builder& b, const Call& call) { exchange(b, call, 1); }

}  // namespace stretto::coll
