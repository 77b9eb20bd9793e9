// SPDX-License-Identifier: BSD-3-Clause
// Gather and Gatherv (paper S1, section 2.3). Every rank fills its own slots and its channel to the
// root. The root drains all channels, whichever has something. In between it copies its own block
// piece by piece, so that no rank's slots stay full meanwhile. A sender knows its own length, so
// the root need not publish its counts.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void gather(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root) return send_one(call, team.to(root), send, good);
  OverlappedCopy copy = good && !in_place ? own_block(call, receive.at(root), send) : OverlappedCopy();
  const std::size_t piece = call.fragment_bytes(copy.bytes());
  copy.advance(piece);
  if (start_receiving_all(call, From::channels, receive, good, copy.done())) return;
  run(
      call,
      [&] {
        const bool moved = step_incoming(call, From::channels);
        return copy.advance(piece) || moved;
      },
      [&] { return copy.done() && incoming_done(team); });
}

}  // namespace stretto::coll_shm
