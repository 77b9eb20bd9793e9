// SPDX-License-Identifier: BSD-3-Clause
// Bcast as a scatter of the vector's parts down a k-nomial tree and an allgather of them. No member
// sends the whole vector.
//
// Cost, for m units: ceil(log_k P) messages for the scatter, then P - 1 (ring) or ceil(log2 P)
// (bruck). Every member receives and sends about 2 m (P - 1) / P. Wins for long vectors when
// pipelining does not pay. The ring keeps to neighbours; the Bruck form has fewer messages.
//
// van de Geijn; Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::coll {
namespace {

void scatter_then(Builder& b, const Call& call, Emit allgather) {
  Call inner = call;
  inner.group = call.group.counted_from(call.root);
  inner.root = 0;
  const Group& places = inner.group;
  const Tree tree = Tree::knomial(places.size, call.parameters.k);
  const int parent = tree.parent(places.me);
  if (parent < 0) b.copy(call.in, call.out);
  inner.outs = Parts::deal(call.out, places.size);
  inner.in = inner.outs.at(places.me);
  const auto subtree = [&](int place) { return inner.outs.range(place, tree.subtree_end(place)); };
  if (parent >= 0) b.recv(places.rank(parent), subtree(places.me));
  tree.each_child_backwards(places.me, [&](int child) { b.send(places.rank(child), subtree(child)); });
  allgather(b, inner);
}

}  // namespace

void bcast_scatter_ring(Builder& b, const Call& call) { scatter_then(b, call, allgather_ring); }
void bcast_scatter_bruck(Builder& b, const Call& call) { scatter_then(b, call, allgather_bruck); }

}  // namespace stretto::coll
