// SPDX-License-Identifier: BSD-3-Clause
// Allreduce as a reduce to one member and a bcast from it.
//
// Cost, for m units: 2 ceil(log_k P) levels of k-nomial trees. Every member but one sends and
// receives 2 m at most. Order is kept. Wins where an exchange in both directions costs twice.
// Hierarchies use it as a form.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void allreduce_reduce_bcast(Builder& b, const Call& call) {
  Call inner = call;
  inner.root = 0;
  reduce_knomial(b, inner);
  inner.in = call.out;
  bcast_knomial(b, inner);
}

}  // namespace stretto::coll
