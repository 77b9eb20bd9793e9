// SPDX-License-Identifier: BSD-3-Clause
// Bcast: the root writes each fragment once, to its board; all others copy it out. Two copies of the message deep, however
// many ranks; the root returns as soon as its last fragment is published.
#include "coll/direct/direct.hpp"
#include "coll/direct/steps.hpp"

namespace stretto::coll::direct {

void bcast(shm::Call& call, const Region& buffer, int root, bool good) {
  shm::Team& team = call.team();
  if (team.rank() == root) {
    shm::Outgoing message;
    message.start(good ? buffer : kNothing, !good);
    send_all(call, message, team.board());
  } else {
    shm::Incoming message;
    message.start(good ? buffer : kNothing, !good);
    receive_all(call, message, team.member(root).board);
  }
}

}  // namespace stretto::coll::direct
