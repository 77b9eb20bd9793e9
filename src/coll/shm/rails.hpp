// SPDX-License-Identifier: BSD-3-Clause
// Reductions by rails. In each lowest group the vector is cut into slices, and the rank that has a
// slice combines it of all ranks there. The ranks that have the same slice in different groups
// combine what they have in the same way, level by level. So a rank reads most from its own cache's
// ranks, and a slice of a slice from afar.
//
// The order of combining is that of the groups: first within the lowest ones.
#pragma once
#include <algorithm>

#include "coll/shm/reduce_scatter_slices.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

// Where the slices of a level begin. Members beyond the last slice have none.
template <class Parts>
auto slices_of(const Parts& parts, int slices) {
  return [&parts, slices](int rank) { return parts.begin(std::min(rank, slices), slices); };
}

// Reads slice_of(r) of the first `slices` members, but this one. Meanwhile `mine` goes to the
// board.
template <class SliceOf>
void receive_slices(shm::Call& call, From from, int slices, SliceOf slice_of, shm::Outgoing& mine) {
  shm::Team& team = call.team();
  bool all = mine.done();
  shm::Waiter waiter(team.policy());
  for_each_peer(team, [&](int r) {
    shm::Incoming& in = team.states()[r].in;
    if (r >= slices) return in.skip();
    if (mine.done() && call.lengths_expected()) {
      all = start_receiving<true>(call, from, r, slice_of(r), true, waiter) && all;
    } else if (mine.done()) {
      all = start_receiving(call, from, r, slice_of(r), true, waiter) && all;
    } else {
      in.start(slice_of(r), false);
    }
  });
  if (all) return;
  run_together(
      call,
      [&] {
        const bool moved = !mine.done() && mine.step(call, team.board());
        return step_incoming(call, from) || moved;
      },
      [&] { return mine.done() && incoming_done(team); },
      [&](int peer) { return !mine.done() || misses(team.states()[peer].in, queue_of(team, from, peer)); });
}

// The first `slices` members of call.team() publish their slices of the result, and all copy them.
template <class Parts, class Begin>
void share_slices(shm::Call& call, const Parts& parts, Begin begin, int slices) {
  shm::Team& team = call.team();
  const auto slice_of = [&](int rank) { return parts.out(begin(rank), begin(rank + 1)); };
  shm::Outgoing mine;
  if (team.rank() < slices) start_message(call, mine, team.board(), slice_of(team.rank()), slice_cut(team, parts));
  receive_slices(call, From::boards, slices, slice_of, mine);
}

// The first `slices` members send their slices to member `root`, which has its own in `parts.out`.
template <class Parts, class Begin>
void collect_slices(shm::Call& call, const Parts& parts, Begin begin, int slices, const Region& slice, int root) {
  shm::Team& team = call.team();
  if (team.rank() == root) {
    shm::Outgoing none;
    return receive_slices(
        call, From::channels, slices, [&](int rank) { return parts.out(begin(rank), begin(rank + 1)); }, none);
  }
  if (team.rank() < slices) send_together(call, team.to(root), slice);
}

}  // namespace stretto::coll_shm
