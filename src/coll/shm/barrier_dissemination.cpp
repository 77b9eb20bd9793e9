// SPDX-License-Identifier: BSD-3-Clause
// Barrier of many ranks: ceil(log2 P) rounds of one line each.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void barrier_dissemination(shm::Call& call) {
  shm::Team& team = call.team();
  const int size = team.size();
  const int rank = team.rank();
  for (int distance = 1; distance < size; distance *= 2) {
    send_one(call, team.to((rank + distance) % size), kNothing, true);
    receive_one(call, team.channel((rank + size - distance) % size), kNothing, true);
  }
}

}  // namespace stretto::coll_shm
