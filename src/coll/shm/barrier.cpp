// SPDX-License-Identifier: BSD-3-Clause
// Barrier. Up to kTuning.barrier_flat_ranks members: everybody writes one line and reads everybody else's; one line
// transfer deep, and when ranks share processors the last to arrive releases all at once. Beyond: dissemination,
// ceil(log2 P) rounds of one line each.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void barrier(shm::Call& call) {
  shm::Team& team = call.team();
  const int size = team.size();
  const int rank = team.rank();
  if (size <= kTuning.barrier_flat_ranks) {
    send_one(call, team.board(), kNothing, true);
    for_each_peer(team, [&](int peer) { receive_one(call, team.member(peer).board, kNothing, true); });
    return;
  }
  for (int distance = 1; distance < size; distance *= 2) {
    send_one(call, team.member((rank + distance) % size).to, kNothing, true);
    receive_one(call, team.member((rank + size - distance) % size).channel, kNothing, true);
  }
}

}  // namespace stretto::coll_shm
