// SPDX-License-Identifier: BSD-3-Clause
// Allreduce as a reduce-scatter by halving the number of parts, rounded up, and an allgather by
// doubling distances.
//
// Cost, for m units: 2 ceil(log2 P) rounds. Each member sends 2 m (P - 1) / P units and combines
// m (P - 1) / P. Wins for long vectors where P is no power of two: halving and doubling then sends
// the whole vector twice more. Operations must commute.
//
// Traeff 2024 (arXiv 2410.14234).
#include "coll/algorithms.hpp"

namespace stretto::coll {

void allreduce_circulant(Builder& b, const Call& call) {
  Call inner = call;
  inner.ins = Parts::deal(call.in, call.group.size);
  inner.outs = Parts::deal(call.out, call.group.size);
  inner.out = inner.outs.at(call.group.me);
  reduce_scatter_circulant(b, inner);
  inner.in = inner.out;
  allgather_bruck(b, inner);
}

}  // namespace stretto::coll
