// SPDX-License-Identifier: BSD-3-Clause
// Barrier of few ranks: every rank writes one line and reads the line of every other rank. One
// cache line transfer deep. When ranks share processors, the last to arrive releases all at once.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void barrier_flat(shm::Call& call) {
  shm::Team& team = call.team();
  send_one(call, team.board(), kNothing, true);
  for_each_peer(team, [&](int peer) { receive_one(call, team.member(peer).board, kNothing, true); });
}

}  // namespace stretto::coll_shm
