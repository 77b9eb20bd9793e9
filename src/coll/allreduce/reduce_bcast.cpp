// SPDX-License-Identifier: BSD-3-Clause
// Allreduce as a reduce to one member and a bcast from it. What is cut goes both ways at once.
//
// Cost, for m units. Every member but one sends and receives 2 m at most. Order is kept.
//   reduce_bcast  2 ceil(log_k P) levels of k-nomial trees: wins where an exchange in both
//                 directions costs twice. Hierarchies use it as a form.
//   pipeline      there and back along a chain, in messages that are cut: for calls that return
//                 early
#include "coll/algorithms.hpp"

namespace stretto::coll {

namespace {

void there_and_back(Builder& b, const Call& call, Emit reduce, Emit bcast) {
  Call inner = call;
  inner.root = 0;
  reduce(b, inner);
  inner.in = call.out;
  bcast(b, inner);
}

}  // namespace

void allreduce_reduce_bcast(Builder& b, const Call& call) { there_and_back(b, call, reduce_knomial, bcast_knomial); }
void allreduce_chain(Builder& b, const Call& call) { there_and_back(b, call, reduce_chain, bcast_chain); }

}  // namespace stretto::coll
