// SPDX-License-Identifier: BSD-3-Clause
// Long Allreduce by sockets. In each socket the vector is cut into slices, and the rank that has a
// slice combines it of all ranks there. The ranks that have the same slice in different sockets
// exchange what they have. Then each publishes its slice for its socket. With S sockets, m bytes
// cross from each socket to the others 2 (S - 1) / S times, for any number of ranks. Where each
// rank reads from all others, about m bytes cross for each rank.
#pragma once
#include <algorithm>

#include "coll/shm/allreduce_slices.hpp"
#include "coll/shm/reduce_scatter_slices.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

// The first `slices` ranks of call.team() publish their slices of the result, and all copy them.
template <class Parts, class Begin>
void share_slices(shm::Call& call, const Parts& parts, Begin begin, int slices) {
  shm::Team& team = call.team();
  const auto slice_of = [&](int rank) { return parts.out(begin(rank), begin(rank + 1)); };
  shm::Outgoing board;
  if (team.rank() < slices) board.start(slice_of(team.rank()), false, slice_cut(team, parts));
  for_each_peer(team, [&](int r) {
    shm::Incoming& in = team.states()[r].in;
    r < slices ? in.start(slice_of(r), false) : in.skip();
  });
  run_together(
      call,
      [&] {
        const bool moved = !board.done() && board.step(call, team.board());
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return board.done() && incoming_done(team); },
      [&](int peer) { return !board.done() || misses(team.states()[peer].in, team.member(peer).board); });
}

template <class Parts>
void allreduce_sockets(shm::Call& call, const Parts& parts, const Sockets& sockets) {
  const int slices = sockets.groups.slices();
  const auto begin = [&](int rank) { return parts.begin(std::min(rank, slices), slices); };
  const int rank = sockets.inside->rank();
  const Region slice = parts.out(begin(rank), begin(rank + 1));
  call.turn_to(*sockets.inside);
  combine_slices(call, parts, begin, slice);
  if (sockets.across != nullptr && call.status() == Status::ok) {
    call.turn_to(*sockets.across);
    allreduce_slices(call, parts.with(slice, slice));
    call.turn_to(*sockets.inside);
  }
  if (call.status() == Status::ok) share_slices(call, parts, begin, slices);
}

}  // namespace stretto::coll_shm
