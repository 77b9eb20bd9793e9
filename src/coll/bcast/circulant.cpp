// SPDX-License-Identifier: BSD-3-Clause
// Bcast of a vector in segments, by a pipeline on a circulant graph. Each segment goes down a tree
// of its own.
//
// Cost, for S segments of s units: S - 1 + ceil(log2 P) rounds, which is the least. In each of them
// a member sends one segment and receives one. Every member but the root receives the vector once,
// and none sends more than about one vector. Wins for long vectors and many members: a chain is as
// quick by segment, but takes P rounds to fill. In one segment it is a binomial tree.
//
// Traeff 2024 (arXiv 2407.18004).
#include "coll/shape/circulant.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {

void bcast_circulant(Builder& b, const Call& call) {
  const Group places = call.group.counted_from(call.root);
  const Circulant graph(places.size);
  const int block = b.segment(), blocks = b.segments();
  Slice vector = call.in;
  if (places.me != 0) {
    const Circulant::Arrival mine = graph.arrival(places.me, block, blocks);
    b.set_priority(mine.round);
    vector = call.out;
    b.recv(places.rank(places.around(places.me, -graph.jump(mine.edge))), vector);
  }
  for (int edge = 0; edge < graph.rounds(); ++edge) {
    const int to = places.around(places.me, graph.jump(edge));
    if (to == 0) continue;
    const Circulant::Arrival there = graph.arrival(to, block, blocks);
    if (there.edge != edge) continue;
    b.set_priority(there.round);
    b.send(places.rank(to), vector);
  }
  b.set_priority(block);
  b.copy(vector, call.out);
}

}  // namespace stretto::coll
