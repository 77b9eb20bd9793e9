// SPDX-License-Identifier: BSD-3-Clause
// Scatter and Scatterv (paper S1, section 2.2). Only the root knows the sizes. Each block travels
// through the root's channel to its rank, and its first record says how long it is. The root deals
// fragments round-robin over ranks, so that all copy out at once. It copies its own block whenever
// it would have to wait for them, and last.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

void scatter(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place, bool good) {
  shm::Team& team = call.team();
  if (team.rank() != root) return receive_one(call, team.channel(root), receive, good);
  const bool copies = good && !in_place;
  if (start_sending_all(call, send, good)) {
    if (copies) own_block(call, receive, send.at(root)).finish();
    return;
  }
  OverlappedCopy copy = copies ? own_block(call, receive, send.at(root)) : OverlappedCopy();
  const std::size_t piece = call.fragment_bytes(copy.bytes());
  run(call, [&] { return step_outgoing(call) || copy.advance(piece); }, [&] { return outgoing_done(team); });
  copy.finish();
}

}  // namespace stretto::coll_shm
