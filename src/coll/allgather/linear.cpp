// SPDX-License-Identifier: BSD-3-Clause
// Allgather by direct messages: every member sends its part to all others, beginning with its
// neighbour. `window` bounds the exchanges in flight.
//
// Cost: P - 1 messages of one part each, all at once. Wins for few members, where one latency
// counts.
#include "coll/algorithms.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {

void allgather_linear(Builder& b, const Call& call) {
  const Group& group = call.group;
  b.copy(call.in, call.outs.at(group.me));
  Window window(b, call.parameters.window);
  for (int distance = 1; distance < group.size; ++distance) {
    const int to = group.around(group.me, distance);
    const int from = group.around(group.me, -distance);
    window.admit([&] { return b.send(group.rank(to), call.in); },
                 [&] { return b.recv(group.rank(from), call.outs.at(from)); });
  }
}

}  // namespace stretto::coll
