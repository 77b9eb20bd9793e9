// SPDX-License-Identifier: BSD-3-Clause
// Reduce up a tree. A member combines its contribution with the sums of its children, nearest
// first, and sends the result to its parent. Contributions stay in the order of places, so an
// operation need not commute. If it does not commute, places are members; the tree's root sends the
// result to the call's root where they differ.
//
// Cost: bcast/tree.cpp in reverse; c(s) is the time of combining s units.
//   flat       P - 1 messages and combinations at the root
//   binomial   ceil(log2 P) (t + c): wins for short vectors
//   knomial    ceil(log_k P) rounds of k - 1 messages
//   chain      (P - 1)(t(s) + c(s)) + (S - 1) max(g, c): segmented, wins for long vectors
//   kchain     ceil((P - 1) / k) (t + c) + k messages at the root: wins from tens of members on, at
//              k about sqrt((P - 1)(t + c) / c); the shorter chains come first, as they are ready
//              first (kchain_long_first: last)
//   binary     floor(log2 P) levels of two messages; its root is member P - 1
//   pipeline   a chain that cuts its messages itself: for calls that return early
// Bytes: every member but the root sends the vector once.
//
// The balanced in-order binary tree and the k-chain, with their LogP cost: Kurnosov, Tokmasheva
// 2022; Pjesivac-Grbovic 2007.
#include "coll/shape/tree.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {
namespace {

void up(Builder& b, const Call& call, const Tree& tree) {
  const bool ordered = !call.commutative && call.root != tree.root();
  const Group places = ordered ? call.group : call.group.counted_from(call.group.around(call.root, -tree.root()));
  const bool is_root = call.group.me == call.root;
  const int parent = tree.parent(places.me);
  Slice sum = call.in;
  tree.each_child(places.me, [&](int child) {
    const Slice to = sum != call.in ? sum : is_root && parent < 0 ? call.out : b.scratch(sum.length);
    b.recv_reduce(places.rank(child), sum, to, tree.children_side());
    sum = to;
  });
  if (parent >= 0) {
    b.send(places.rank(parent), sum);
  } else if (!is_root) {
    b.send(call.group.rank(call.root), sum);
  } else {
    b.copy(sum, call.out);
  }
  if (is_root && parent >= 0) b.recv(places.rank(tree.root()), call.out);
}

}  // namespace

void reduce_flat(Builder& b, const Call& call) { up(b, call, Tree::flat(call.group.size)); }
void reduce_binomial(Builder& b, const Call& call) { up(b, call, Tree::knomial(call.group.size, 2)); }
void reduce_knomial(Builder& b, const Call& call) { up(b, call, Tree::knomial(call.group.size, call.parameters.k)); }
void reduce_chain(Builder& b, const Call& call) { up(b, call, Tree::kchain(call.group.size, 1)); }
void reduce_kchain(Builder& b, const Call& call) { up(b, call, Tree::kchain(call.group.size, call.parameters.k)); }
void reduce_kchain_long_first(Builder& b, const Call& call) {
  up(b, call, Tree::kchain(call.group.size, call.parameters.k, true));
}
void reduce_binary(Builder& b, const Call& call) { up(b, call, Tree::binary(call.group.size)); }

}  // namespace stretto::coll
