// SPDX-License-Identifier: BSD-3-Clause
// Short Allreduce: every rank publishes all that it has, and combines what all ranks published. One
// cache line transfer deep.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

template <class Parts>
void allreduce_flat(shm::Call& call, const Parts& parts) {
  shm::Team& team = call.team();
  const Region result = parts.out(0, parts.bytes());
  shm::Outgoing mine;
  const bool sent = start_message(call, mine, team.board(), parts.own(0, parts.bytes()));
  if (sent && parts.combine_whole(call, From::boards, 0, result)) return;
  for (int r = 0; r < team.size(); ++r) team.states()[r].in.skip();
  typename Parts::Combiner all = parts.combiner(team, From::boards, 0, team.size(), 0, result);
  publish_and_combine(call, parts, mine, all, [] { return false; }, [] { return true; });
}

}  // namespace stretto::coll_shm
