// SPDX-License-Identifier: BSD-3-Clause
// Bcast: the root writes each fragment once, to its board, and all others copy it out. It is two
// copies of the message deep, for any number of ranks. The root returns as soon as its last
// fragment is published.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void bcast_board(shm::Call& call, const Region& buffer, int root, bool good) {
  shm::Team& team = call.team();
  if (team.rank() == root) {
    send_one(call, team.board(), buffer, good);
  } else {
    receive_one(call, team.member(root).board, buffer, good);
  }
}

}  // namespace stretto::coll_shm
