// SPDX-License-Identifier: BSD-3-Clause
// Scan by doubling distances. In round j a member sends its sum to the member 2^j after it. After
// the round its sum contains the 2^(j+1) members up to itself, or all there are.
//
// Cost: ceil(log2 P) rounds of one message of the vector each. Wins for short vectors. Order is
// kept.
//
// Hillis, Steele 1986.
#include "coll/phase/doubling.hpp"

#include "coll/algorithms.hpp"

namespace stretto::coll {

void scan_doubling(Builder& b, const Call& call) { scan_by_doubling(b, call.group, 0, call.in, call.out); }

}  // namespace stretto::coll
