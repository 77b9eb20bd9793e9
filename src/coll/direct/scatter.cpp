// SPDX-License-Identifier: BSD-3-Clause
// Scatter and Scatterv (paper S1, section 2.2). Only the root knows the sizes: each block travels through the root's
// channel to its rank, and its first record says how long it is. The root deals fragments round-robin over ranks, so that
// all copy out at once; its own block it copies last, while they do.
#include "coll/direct/direct.hpp"

namespace stretto::coll::direct {

namespace {

void deal(shm::Call& call, int root) {
  shm::Team& team = call.team();
  const int size = team.size();
  shm::Waiter waiter(team.policy());
  for (int unfinished = size - 1; unfinished > 0;) {
    bool moved = false;
    for (int i = 1; i < size; ++i) {
      const int rank = (root + i) % size;
      shm::Outgoing& message = team.states()[rank].out;
      if (message.done() || !message.step(call, team.member(rank).to)) continue;
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

void scatter(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root) {
    shm::Incoming message;
    message.start(good ? receive : Region{}, !good);
    shm::receive_all(call, message, team.member(root).channel);
    return;
  }
  for (int r = 0; r < team.size(); ++r) {
    if (r != root) team.states()[r].out.start(good ? send.at(r) : Region{}, !good);
  }
  deal(call, root);
  if (good && !in_place) {
    const Region own = send.at(root);
    if (own.bytes() > receive.bytes()) call.fail(Status::truncated);
    region_copy(receive, own);
  }
}

}  // namespace stretto::coll::direct
