// SPDX-License-Identifier: BSD-3-Clause
// Gather and Gatherv (paper S1, section 2.3). Every rank fills its own slots and its channel to the
// root. The root drains all channels, whichever has something. In between it copies its own block
// piece by piece, so that no rank's slots stay full meanwhile. A sender knows its own length, so
// the root need not publish its counts.
#include "coll/shm/collectives.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

template <bool kTogether>
void go_by_channels(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root)
    return kTogether ? send_together(call, team.to(root), send) : send_one(call, team.to(root), send, good);
  OverlappedCopy copy = good && !in_place ? own_block(call, receive.at(root), send) : OverlappedCopy();
  const std::size_t piece = call.fragment_bytes(copy.bytes());
  copy.advance(piece);
  if (start_receiving_all(call, From::channels, receive, good, copy.done())) return;
  run_either<kTogether>(
      call,
      [&] {
        const bool moved = step_incoming(call, From::channels);
        return copy.advance(piece) || moved;
      },
      [&] { return copy.done() && incoming_done(team); },
      [&](int peer) { return misses(team.states()[peer].in, team.channel(peer)); });
}

}  // namespace

void gather_channels(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good,
                     bool together) {
  together ? go_by_channels<true>(call, send, receive, root, in_place, good)
           : go_by_channels<false>(call, send, receive, root, in_place, good);
}

}  // namespace stretto::coll_shm
