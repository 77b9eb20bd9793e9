// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives by direct messages: one for each edge of the graph. It is the same for
// any hierarchy, so it is no line of the manifest.
//
// Cost: one message for each edge, all at once.
#include "coll/algorithm.hpp"

namespace stretto::coll {
namespace {

using sched::Buffer;
using sched::Slice;

Slice part(Buffer buffer, const std::uint64_t* begins, int block) {
  return {buffer, begins[block], begins[block + 1] - begins[block]};
}

}  // namespace

Schedule build_neighbors(Builder& builder, const Problem& p) {
  const Neighborhood& neighborhood = *p.neighborhood;
  const auto sent = [&](int block) { return part(Buffer::send, p.sent_begins, p.sends_alike() ? 0 : block); };
  const auto received = [&](int block) { return part(Buffer::receive, p.begins, block); };
  for (int n = 0; n < neighborhood.turns(); ++n) {
    const Neighborhood::Turn turn = neighborhood.turn(n);
    for (const auto& edge : turn.in) builder.recv(edge.peer, received(edge.block));
    for (const auto& edge : turn.out) builder.send(edge.peer, sent(edge.block));
  }
  for (const Neighborhood::Own& own : neighborhood.own()) {
    const Slice from = sent(own.from), to = received(own.to);
    builder.copy(from.part(0, std::min(from.length, to.length)), to.part(0, std::min(from.length, to.length)));
  }
  return builder.finish();
}

}  // namespace stretto::coll
