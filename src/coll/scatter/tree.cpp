// SPDX-License-Identifier: BSD-3-Clause
// Scatter down a k-nomial tree. A member receives the parts of its subtree and sends its children
// theirs, biggest subtree first.
//
// Cost, for parts of m units: ceil(log_k P) levels; the root sends (P - 1) m in (k - 1) log_k P
// messages.
//   flat       P - 1 messages of one part, straight from their places: wins for long parts;
//              `window` bounds those in flight
//   binomial   wins for short parts, where messages cost more than bytes
//   knomial    between them
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/subtree.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {
namespace {

void down(Builder& b, const Call& call, int k) {
  const Group places = call.group.counted_from(call.root);
  const Tree tree = Tree::knomial(places.size, k);
  const Ring parts{call.ins, call.root};
  const Subtree subtree(b, places, tree, parts, call.out);
  if (!subtree.is_root()) {
    subtree.each_message(places.me, [&](Slice part) { b.recv(places.rank(subtree.parent()), part); });
  }
  Window window(b, call.parameters.window);
  tree.each_child_backwards(places.me, [&](int child) {
    subtree.each_message(child, [&](Slice part) { window.admit([&] { return b.send(places.rank(child), part); }); });
  });
  b.copy(subtree.own_part(), call.out);
}

}  // namespace

void scatter_flat(Builder& b, const Call& call) { down(b, call, call.group.size); }
void scatter_binomial(Builder& b, const Call& call) { down(b, call, 2); }
void scatter_knomial(Builder& b, const Call& call) { down(b, call, call.parameters.k); }

}  // namespace stretto::coll
