// SPDX-License-Identifier: BSD-3-Clause
// Short Allreduce of many ranks that share processors: rank 0 combines what all send it, in rank
// order, and publishes the result. Two cache line transfers deep, and each rank but rank 0 shares
// queues with rank 0 alone: 2 (P - 1) messages, where each to all makes an ack line for each pair.
#pragma once
#include "coll/shm/reduce_root.hpp"

namespace stretto::coll_shm {

template <class Parts>
void allreduce_root(shm::Call& call, const Parts& parts) {
  shm::Team& team = call.team();
  reduce_root(call, parts, 0);
  if (call.status() != Status::ok) return;
  const Region result = parts.out(0, parts.bytes());
  team.rank() == 0 ? send_together(call, team.board(), result) : receive_together(call, team.member(0).board, result);
}

}  // namespace stretto::coll_shm
