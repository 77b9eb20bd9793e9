// SPDX-License-Identifier: BSD-3-Clause
// Allgather and Allgatherv (paper S1, section 2.4). No root: a rank writes each fragment of its block once, to its board,
// and drains everybody else's board, whatever has something first. Both go on together, so no rank waits with a full lane
// for a peer that waits with a full lane for it.
#include "coll/direct/direct.hpp"
#include "coll/direct/steps.hpp"

namespace stretto::coll::direct {

void allgather(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good) {
  shm::Team& team = call.team();
  for_each_peer(team, [&](int peer) { team.states()[peer].in.start(good ? receive.at(peer) : kNothing, !good); });
  const Region own = good ? receive.at(team.rank()) : kNothing;
  shm::Outgoing mine;
  mine.start(!good ? kNothing : in_place ? own : send, !good);
  mine.step(call, team.board());  // peers start on our first fragment while we copy our own block
  if (good && !in_place) copy_own(call, own, send);
  run(
      call,
      [&] {
        const bool moved = !mine.done() && mine.step(call, team.board());
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return mine.done() && incoming_done(team); });
}

}  // namespace stretto::coll::direct
