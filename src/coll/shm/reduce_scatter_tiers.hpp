// SPDX-License-Identifier: BSD-3-Clause
// Short Reduce_scatter by tiers: as an Allreduce, of which each rank keeps its slice.
#pragma once
#include "coll/shm/allreduce_tiers.hpp"

namespace stretto::coll_shm {

template <class Parts, class Begin>
void reduce_scatter_tiers(shm::Call& call, const Parts& parts, Begin begin, const Tiers& tiers) {
  const std::uint64_t bytes = parts.bytes();
  const TemporaryBuffer aside(bytes);
  if (aside.missing()) return call.fail(Status::no_memory);
  allreduce_tiers(call, parts.with(parts.own(0, bytes), plain(aside.get(), bytes)), tiers);
  if (call.status() != Status::ok) return;
  const int rank = call.whole().rank();
  const std::uint64_t first = begin(rank), length = begin(rank + 1) - first;
  region_copy(parts.out(0, length), plain(aside.get() + first, length));
}

}  // namespace stretto::coll_shm
