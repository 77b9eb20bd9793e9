// SPDX-License-Identifier: BSD-3-Clause
// Barrier of many ranks, by tiers: an Allreduce of nothing (allreduce_tiers.hpp).
#include "coll/shm/collectives.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

void barrier_tiers(shm::Call& call, const Tiers& tiers) {
  int tier = 0;
  for (;; ++tier) {
    shm::Team& team = *tiers.teams[tier];
    call.turn_to(team);
    const bool exchanges = tiers.is_top(tier);
    if (exchanges) send_together(call, team.board(), kNothing);
    if (exchanges || tiers.leads(tier)) {
      gather_nothing(call, exchanges ? From::boards : From::channels);
    } else {
      send_together(call, team.to(0), kNothing);
    }
    if (call.status() != Status::ok) return;
    if (exchanges || !tiers.leads(tier)) break;
  }
  hand_down(call, kNothing, tiers, tier);
}

}  // namespace stretto::coll_shm
