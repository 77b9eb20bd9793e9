// SPDX-License-Identifier: BSD-3-Clause
// Long Allreduce: rank d combines slice d of all contributions, and publishes it as it grows. A
// rank copies in (P - 1)/P of its own contribution, and combines m/P bytes of P ranks. Where ranks
// share processors, only the first few have a slice, so ranks share fewer queues.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

template <class Parts>
void allreduce_slices(shm::Call& call, const Parts& parts, int owners) {
  shm::Team& team = call.team();
  const auto begin = [&](int rank) { return slice_begin(parts, rank, owners); };
  const int rank = team.rank();
  const Region result = parts.out(begin(rank), begin(rank + 1));
  const shm::Cut cut = slice_cut(team, parts);
  start_parts(call, parts, begin, cut, owners);
  typename Parts::Combiner slice = slice_combiner(team, parts, owners, result);
  shm::Outgoing board;
  rank < owners ? board.start(result, false, cut) : board.skip();
  for (int r = 0; r < team.size(); ++r) {
    shm::Incoming& in = team.states()[r].in;
    if (r != rank) r < owners ? in.start(parts.out(begin(r), begin(r + 1)), false) : in.skip();
  }
  // In place, slice r of the result comes in over what this rank sends to r. That is in order: r
  // publishes a byte of its slice only after it has read that byte of our contribution.
  run_together(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        board.allow(slice.combined());
        if (!board.done() && board.step(call, team.board())) moved = true;
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && board.done() && incoming_done(team); },
      [&](int peer) {
        return unsent(team, peer) || !board.done() || slice.misses(peer) ||
               misses(team.states()[peer].in, team.member(peer).board);
      });
}

}  // namespace stretto::coll_shm
