// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by tiers. The members of a tier send what they have to the first one, which combines it
// and goes on to the next tier. The members of the highest tier exchange what they have. Results go
// down the same way. With groups of g ranks, one step up or down is one cache line transfer deep,
// and a group moves 2 (g - 1) messages.
#pragma once
#include "coll/shm/allreduce_flat.hpp"
#include "coll/shm/reduce_root.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

template <class Parts>
void allreduce_tiers(shm::Call& call, const Parts& parts, const Tiers& tiers) {
  const Region result = parts.out(0, parts.bytes());
  int tier = 0;
  for (;; ++tier) {
    call.turn_to(*tiers.teams[tier]);
    const Parts here = tier == 0 ? parts : parts.with(result, result);
    tiers.is_top(tier) ? allreduce_flat(call, here) : reduce_root(call, here, 0);
    if (call.status() != Status::ok) return;
    if (tiers.is_top(tier) || !tiers.leads(tier)) break;
  }
  hand_down(call, result, tiers, tier);
}

}  // namespace stretto::coll_shm
