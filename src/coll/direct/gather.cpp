// SPDX-License-Identifier: BSD-3-Clause
// Gather and Gatherv (paper S1, section 2.3). Every rank fills its own slots and its channel to the root; the root drains
// all channels, taking whichever has something. A sender knows its own length, so the root need not publish its counts.
#include "coll/direct/direct.hpp"

namespace stretto::coll::direct {

namespace {

void drain(shm::Call& call, int root) {
  shm::Team& team = call.team();
  const int size = team.size();
  shm::Waiter waiter(team.policy());
  for (int unfinished = size - 1; unfinished > 0;) {
    bool moved = false;
    for (int i = 1; i < size; ++i) {
      const int rank = (root + i) % size;
      shm::Incoming& message = team.states()[rank].in;
      if (message.done() || !message.step(call, team.member(rank).channel)) continue;
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

void gather(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root) {
    shm::Outgoing message;
    message.start(good ? send : Region{}, !good);
    shm::send_all(call, message, team.member(root).to);
    return;
  }
  for (int r = 0; r < team.size(); ++r) {
    if (r != root) team.states()[r].in.start(good ? receive.at(r) : Region{}, !good);
  }
  if (good && !in_place) {
    const Region own = receive.at(root);
    if (send.bytes() > own.bytes()) call.fail(Status::truncated);
    region_copy(own, send);
  }
  drain(call, root);
}

}  // namespace stretto::coll::direct
