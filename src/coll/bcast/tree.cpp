// SPDX-License-Identifier: BSD-3-Clause
// Bcast down a tree: a member receives the vector and sends it on to its children, biggest subtree
// first. In segments the tree is a pipeline, since a member sends a segment on as soon as it is
// there.
//
// Cost to the last member, for S segments of s units. A message takes t(s), and sends follow each
// other by g(s).
//   flat       S (P - 1) sends at the root: wins for two or three members, and where sends overlap
//              well
//   binomial   ceil(log2 P) t, the root busy for as many sends per segment: wins for short vectors
//   knomial    ceil(log_k P) rounds of k - 1 sends: wins where latency is much longer than the gap
//   chain      (P - 1) t(s) + (S - 1) g(s), every member sends everything once: wins for long
//              vectors and few members
//   kchain     ceil((P - 1) / k) t(s) + (S k - 1) g(s): between chain and flat, best at
//              k = sqrt((P - 1) t / (S g))
//   binary     about log2 P t(s) + 2 S g(s): wins for middle lengths and many members
//   pipeline   a chain that cuts its messages itself: for calls that return early
// Bytes: every member but the root receives the vector once.
//
// Binomial and chains: Chan, Heimlich, Purkayastha, van de Geijn 2007; the k-chain's best k:
// Pjesivac-Grbovic 2007.
#include "coll/shape/tree.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {
namespace {

void down(Builder& b, const Call& call, const Tree& tree) {
  const Group places = call.group.counted_from(call.group.around(call.root, -tree.root()));
  const int parent = tree.parent(places.me);
  Slice vector = call.out;
  if (parent >= 0) {
    b.recv(places.rank(parent), vector);
  } else {
    vector = call.in;
  }
  tree.each_child_backwards(places.me, [&](int child) { b.send(places.rank(child), vector); });
  b.copy(vector, call.out);
}

}  // namespace

void bcast_flat(Builder& b, const Call& call) { down(b, call, Tree::flat(call.group.size)); }
void bcast_binomial(Builder& b, const Call& call) { down(b, call, Tree::knomial(call.group.size, 2)); }
void bcast_knomial(Builder& b, const Call& call) { down(b, call, Tree::knomial(call.group.size, call.parameters.k)); }
void bcast_chain(Builder& b, const Call& call) { down(b, call, Tree::kchain(call.group.size, 1)); }
void bcast_kchain(Builder& b, const Call& call) { down(b, call, Tree::kchain(call.group.size, call.parameters.k)); }
void bcast_binary(Builder& b, const Call& call) { down(b, call, Tree::binary(call.group.size)); }

}  // namespace stretto::coll
