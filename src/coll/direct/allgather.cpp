// SPDX-License-Identifier: BSD-3-Clause
// Allgather and Allgatherv (paper S1, section 2.4). No root: a rank writes each fragment of its block once, to its board,
// and drains everybody else's board, whatever has something first. Both go on together, so no rank waits with a full lane
// for a peer that waits with a full lane for it.
#include "coll/direct/direct.hpp"

namespace stretto::coll::direct {

namespace {

void exchange(shm::Call& call, shm::Outgoing& mine) {
  shm::Team& team = call.team();
  const int size = team.size();
  shm::Waiter waiter(team.policy());
  int unfinished = size - 1;
  while (unfinished > 0 || !mine.done()) {
    bool moved = !mine.done() && mine.step(call, team.board());
    for (int i = 1; i < size; ++i) {
      const int peer = (team.rank() + i) % size;
      shm::Incoming& message = team.states()[peer].in;
      if (message.done() || !message.step(call, team.member(peer).board)) continue;
      moved = true;
      if (message.done()) --unfinished;
    }
    if (moved) {
      waiter.moved();
    } else {
      waiter.step();
    }
  }
}

}  // namespace

void allgather(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good) {
  shm::Team& team = call.team();
  const int rank = team.rank();
  for (int r = 0; r < team.size(); ++r) {
    if (r != rank) team.states()[r].in.start(good ? receive.at(r) : Region{}, !good);
  }
  const Region own = good ? receive.at(rank) : Region{};
  shm::Outgoing mine;
  mine.start(!good ? Region{} : in_place ? own : send, !good);
  mine.step(call, team.board());  // peers start on our first fragment while we copy our own block
  if (good && !in_place) {
    if (send.bytes() > own.bytes()) call.fail(Status::truncated);
    region_copy(own, send);
  }
  exchange(call, mine);
}

}  // namespace stretto::coll::direct
