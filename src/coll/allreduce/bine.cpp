// SPDX-License-Identifier: BSD-3-Clause
// Allreduce as a reduce-scatter and an allgather along a Bine butterfly, nearest partners first and
// last.
//
// Cost: that of halving and doubling. Distances are 1, 1, 3, 5, 11, ... instead of 1, 2, 4, 8, ...
// Operations must commute.
//
// De Sensi et al. 2025 (arXiv 2508.17311).
#include "coll/algorithms.hpp"
#include "coll/phase/halving.hpp"

namespace stretto::coll {

void allreduce_bine(Builder& b, const Call& call) { halve_and_double(b, call, Halving::Partners::bine); }

}  // namespace stretto::coll
