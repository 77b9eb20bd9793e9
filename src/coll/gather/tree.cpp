// SPDX-License-Identifier: BSD-3-Clause
// Gather up a k-nomial tree. An inner member collects the parts of its subtree and sends them on in
// one message. To the root these are two, where the root's own part comes in between.
//
// Cost, for parts of m units: ceil(log_k P) levels; the root receives (P - 1) m in (k - 1) log_k P
// messages.
//   flat       P - 1 messages of one part, straight into their places: wins for long parts;
//              `window` bounds those in flight
//   binomial   wins for short parts, where messages cost more than bytes
//   knomial    between them
//
// Thakur, Rabenseifner, Gropp 2005; the window: Chakraborty, Subramoni, Panda 2017.
#include "coll/algorithms.hpp"
#include "coll/phase/subtree.hpp"
#include "coll/phase/window.hpp"

namespace stretto::coll {
namespace {

void up(Builder& b, const Call& call, int k) {
  const Group places = call.group.counted_from(call.root);
  const Tree tree = Tree::knomial(places.size, k);
  const Ring parts{call.outs, call.root};
  const Subtree subtree(b, places, tree, parts, call.in);
  b.copy(call.in, subtree.own_part());
  Window window(b, call.parameters.window);
  tree.each_child(places.me, [&](int child) {
    subtree.each_message(child, [&](Slice part) { window.admit([&] { return b.recv(places.rank(child), part); }); });
  });
  if (subtree.is_root()) return;
  subtree.each_message(places.me, [&](Slice part) { b.send(places.rank(subtree.parent()), part); });
}

}  // namespace

void gather_flat(Builder& b, const Call& call) { up(b, call, call.group.size); }
void gather_binomial(Builder& b, const Call& call) { up(b, call, 2); }
void gather_knomial(Builder& b, const Call& call) { up(b, call, call.parameters.k); }

}  // namespace stretto::coll
