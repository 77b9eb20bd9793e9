// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter as a reduce to member 0 and a scatter of the result, by k-nomial trees.
//
// Cost, for m units in all: 2 ceil(log_k P) levels. A message has m units on the way up, and what
// its subtree needs on the way down. Wins for short vectors under operations that do not commute.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void reduce_scatter_reduce_scatterv(Builder& b, const Call& call) {
  Call inner = call;
  inner.root = 0;
  inner.in = call.ins.all();
  if (call.group.me == 0) inner.out = b.scratch(inner.in.length);
  reduce_knomial(b, inner);
  inner.ins = call.ins.moved_to(inner.out);
  inner.out = call.out;
  scatter_knomial(b, inner);
}

}  // namespace stretto::coll
