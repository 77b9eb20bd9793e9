// SPDX-License-Identifier: BSD-3-Clause
// Reduce of a vector in segments: bcast/circulant.cpp in reverse. Messages go back over their
// edges, the last round first, and sums take the place of copies.
//
// Cost, for S segments of s units: S - 1 + ceil(log2 P) rounds. In each of them a member sends one
// segment, receives one and combines it. Wins for long vectors and many members. Sums join members
// that are no neighbours, so operations must commute.
//
// Traeff 2024 (arXiv 2407.18004).
#include "coll/shape/circulant.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {

void reduce_circulant(Builder& b, const Call& call) {
  const Group places = call.group.counted_from(call.root);
  const Circulant graph(places.size);
  const int segment = b.segment(), blocks = b.segments();
  const int block = blocks - 1 - segment;  // the first segment's way is the last block's, back
  const auto priority = [&](int round) { return graph.all_rounds(blocks) - 1 - round; };
  Array<Circulant::Arrival> children;  // the last round first
  for (int edge = 0; edge < graph.rounds(); ++edge) {
    const int from = places.around(places.me, graph.jump(edge));
    if (from == 0) continue;
    const Circulant::Arrival there = graph.arrival(from, block, blocks);
    if (there.edge != edge) continue;
    children.push(there);
    for (std::size_t i = children.size() - 1; i > 0 && children[i - 1].round < children[i].round; --i) {
      const Circulant::Arrival later = children[i];
      children[i] = children[i - 1];
      children[i - 1] = later;
    }
  }
  if (children.failed()) return b.fail();
  Slice sum = call.in;
  for (const Circulant::Arrival& child : children) {
    b.set_priority(priority(child.round));
    const Slice to = sum != call.in ? sum : places.me == 0 ? call.out : b.scratch(sum.length);
    b.recv_reduce(places.rank(places.around(places.me, graph.jump(child.edge))), sum, to, sched::Side::right);
    sum = to;
  }
  if (places.me == 0) {
    b.copy(sum, call.out);
  } else {
    const Circulant::Arrival mine = graph.arrival(places.me, block, blocks);
    b.set_priority(priority(mine.round));
    b.send(places.rank(places.around(places.me, -graph.jump(mine.edge))), sum);
  }
  b.set_priority(segment);
}

}  // namespace stretto::coll
