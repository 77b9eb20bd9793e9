// SPDX-License-Identifier: BSD-3-Clause
// Gather and Gatherv (paper S1, section 2.3). Every rank fills its own slots and its channel to the root; the root drains
// all channels, taking whichever has something. A sender knows its own length, so the root need not publish its counts.
#include "coll/direct/direct.hpp"
#include "coll/direct/steps.hpp"

namespace stretto::coll::direct {

void gather(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root) return send_one(call, team.member(root).to, send, good);
  if (good && !in_place) copy_own(call, receive.at(root), send);
  start_receiving_all(call, From::channels, receive, good, true);
  run(call, [&] { return step_incoming(call, From::channels); }, [&] { return incoming_done(team); });
}

}  // namespace stretto::coll::direct
