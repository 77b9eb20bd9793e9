// SPDX-License-Identifier: BSD-3-Clause
// Barrier. Up to kProfile.barrier_flat_ranks members: everybody writes one line and reads everybody else's; one line transfer deep, and
// when ranks share processors the last to arrive releases all at once. Beyond: dissemination, ceil(log2 P) rounds of one
// line each.
#include "coll/direct/direct.hpp"
#include "coll/direct/steps.hpp"

namespace stretto::coll::direct {

namespace {

void signal(shm::Call& call, shm::OutQueue& queue) {
  shm::Outgoing message;
  message.start(kNothing, false);
  send_all(call, message, queue);
}

void await(shm::Call& call, shm::InQueue& queue) {
  shm::Incoming message;
  message.start(kNothing, false);
  receive_all(call, message, queue);
}

}  // namespace

void barrier(shm::Call& call) {
  shm::Team& team = call.team();
  const int size = team.size();
  const int rank = team.rank();
  if (size <= kProfile.barrier_flat_ranks) {
    signal(call, team.board());
    for_each_peer(team, [&](int peer) { await(call, team.member(peer).board); });
    return;
  }
  for (int distance = 1; distance < size; distance *= 2) {
    signal(call, team.member((rank + distance) % size).to);
    await(call, team.member((rank + size - distance) % size).channel);
  }
}

}  // namespace stretto::coll::direct
