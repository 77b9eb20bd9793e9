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
#include "coll/phase/by_parts.hpp"

namespace stretto::coll {

void allreduce_circulant(Builder& b, const Call& call) {
  allreduce_by_parts(b, call, reduce_scatter_circulant, allgather_bruck);
}

}  // namespace stretto::coll
