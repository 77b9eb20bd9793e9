// SPDX-License-Identifier: BSD-3-Clause
// Short Reduce: all ranks send to the root, which combines.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

template <class Parts>
void reduce_root(shm::Call& call, const Parts& parts, int root) {
  shm::Team& team = call.team();
  if (team.rank() != root) {
    shm::Outgoing message;
    if (start_message(call, message, team.to(root), parts.own(0, parts.bytes()))) return;
    return run_together(
        call, [&] { return message.step(call, team.to(root)); }, [&] { return message.done(); },
        [&](int peer) { return peer == root; });
  }
  const Region result = parts.out(0, parts.bytes());
  if (parts.combine_whole(call, From::channels, 0, result)) return;
  typename Parts::Combiner all = parts.combiner(team, From::channels, 0, team.size(), 0, result);
  run_together(
      call, [&] { return all.step(call); }, [&] { return all.done(); }, [&](int peer) { return all.misses(peer); });
}

}  // namespace stretto::coll_shm
