// SPDX-License-Identifier: BSD-3-Clause
// Barrier of many ranks that share processors: an Allreduce of nothing (allreduce_root.hpp). In
// rounds, each round would wait for a turn of all ranks.
#include "coll/shm/collectives.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

void barrier_root(shm::Call& call) {
  shm::Team& team = call.team();
  if (team.rank() == 0) {
    gather_nothing(call, From::channels);
    if (call.status() == Status::ok) send_together(call, team.board(), kNothing);
  } else {
    send_together(call, team.to(0), kNothing);
    if (call.status() == Status::ok) receive_together(call, team.member(0).board, kNothing);
  }
}

}  // namespace stretto::coll_shm
