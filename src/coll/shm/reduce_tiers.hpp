// SPDX-License-Identifier: BSD-3-Clause
// Reduce by tiers: up as in allreduce_tiers.hpp, to the lowest rank. It sends the result to the
// root.
#pragma once
#include "coll/shm/reduce_root.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

template <class Parts>
void reduce_tiers(shm::Call& call, const Parts& parts, int root, const Tiers& tiers) {
  shm::Team& whole = call.whole();
  const std::uint64_t bytes = parts.bytes();
  const bool is_root = whole.rank() == root;
  const TemporaryBuffer aside(!is_root && tiers.leads(0) ? bytes : 0);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region result = is_root ? parts.out(0, bytes) : plain(aside.get(), bytes);
  for (int tier = 0; tier < tiers.count() && call.status() == Status::ok; ++tier) {
    call.turn_to(*tiers.teams[tier]);
    reduce_root(call, parts.with(tier == 0 ? parts.own(0, bytes) : result, result), 0);
  }
  call.turn_to(whole);
  if (root == 0 || call.status() != Status::ok || (whole.rank() != 0 && !is_root)) return;
  is_root ? receive_together(call, whole.channel(0), result) : send_together(call, whole.to(root), result);
}

}  // namespace stretto::coll_shm
