// SPDX-License-Identifier: BSD-3-Clause
// Scatter and Scatterv (paper S1, section 2.2). Only the root knows the sizes. Each block travels
// through the root's channel to its rank, and its first record says how long it is. The root deals
// fragments round-robin over ranks, so that all copy out at once. It copies its own block whenever
// it would have to wait for them, and last.
#include "coll/shm/collectives.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

template <bool kTogether>
void go_by_channels(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root)
    return kTogether ? receive_together(call, team.channel(root), receive)
                     : receive_one(call, team.channel(root), receive, good);
  const bool copies = good && !in_place;
  if (start_sending_all(call, send, good)) {
    if (copies) own_block(call, receive, send.at(root)).finish();
    return;
  }
  OverlappedCopy copy = copies ? own_block(call, receive, send.at(root)) : OverlappedCopy();
  const std::size_t piece = call.fragment_bytes(copy.bytes());
  run_either<kTogether>(
      call, [&] { return step_outgoing(call) || copy.advance(piece); }, [&] { return outgoing_done(team); },
      [&](int peer) { return !team.states()[peer].out.done(); });
  copy.finish();
}

}  // namespace

void scatter_channels(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place, bool good,
                      bool together) {
  together ? go_by_channels<true>(call, send, receive, root, in_place, good)
           : go_by_channels<false>(call, send, receive, root, in_place, good);
}

}  // namespace stretto::coll_shm
