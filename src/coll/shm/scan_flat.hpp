// SPDX-License-Identifier: BSD-3-Clause
// Short Scan and Exscan: every rank publishes all that it has, and combines what the ranks before
// it published.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

// Publishes this rank's contribution and combines those of the first `last` ranks. The boards of
// later ranks do not concern it, but the rank reads them all the same.
template <class Parts>
void combine_first(shm::Call& call, const Parts& parts, int last) {
  shm::Team& team = call.team();
  for (int r = 0; r < team.size(); ++r) {
    team.states()[r].in.skip();
    if (r >= last && r != team.rank()) team.states()[r].in.start(kNothing, true);
  }
  typename Parts::Combiner prefix =
      parts.combiner(team, From::boards, 0, last, 0, last == 0 ? kNothing : parts.out(0, parts.bytes()));
  shm::Outgoing mine;
  (void)start_message(call, mine, team.board(), parts.own(0, parts.bytes()));
  publish_and_combine(
      call, parts, mine, prefix, [&] { return step_incoming(call, From::boards); },
      [&] { return incoming_done(team); });
}

template <class Parts>
void scan_flat(shm::Call& call, const Parts& parts, bool exclusive) {
  combine_first(call, parts, call.team().rank() + (exclusive ? 0 : 1));
}

}  // namespace stretto::coll_shm
