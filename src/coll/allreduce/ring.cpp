// SPDX-License-Identifier: BSD-3-Clause
// Allreduce around a ring: P - 1 steps that combine, then P - 1 that distribute. Each step sends
// one part of the vector to the next member. In segments the rings follow each other.
//
// Cost, for m units: 2 (P - 1) messages of m / P units, always between neighbours. Each member
// sends 2 m (P - 1) / P units and combines m (P - 1) / P. Wins for vectors so long that latency
// does not count. Sums begin at different members, so operations must commute.
//
// Patarasuk, Yuan 2009.
#include "coll/algorithms.hpp"
#include "coll/phase/by_parts.hpp"

namespace stretto::coll {

void allreduce_ring(Builder& b, const Call& call) { allreduce_by_parts(b, call, reduce_scatter_ring, allgather_ring); }

}  // namespace stretto::coll
