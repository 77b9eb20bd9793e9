// SPDX-License-Identifier: BSD-3-Clause
// Barrier up and down a k-nomial tree.
//
// Cost: 2 ceil(log_k P) levels; 2 (P - 1) signals in all, the fewest of all barriers. Wins where
// others share the network.
#include "coll/shape/tree.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {

void barrier_tree(Builder& b, const Call& call) {
  const Group& group = call.group;
  const Tree tree = Tree::knomial(group.size, call.parameters.k);
  const int parent = tree.parent(group.me);
  Array<sched::StepId> heard;
  tree.each_child(group.me, [&](int child) { heard.push(b.await(group.rank(child))); });
  if (heard.failed()) return b.fail();
  const auto after_all = [&] {
    for (const sched::StepId step : heard) b.after(step);
  };
  if (parent >= 0) {
    after_all();
    b.signal(group.rank(parent));
    const sched::StepId released = b.await(group.rank(parent));
    heard.clear();
    heard.push(released);
  }
  tree.each_child_backwards(group.me, [&](int child) {
    after_all();
    b.signal(group.rank(child));
  });
}

}  // namespace stretto::coll
