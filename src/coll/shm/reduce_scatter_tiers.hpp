// SPDX-License-Identifier: BSD-3-Clause
// Short Reduce_scatter by tiers: as an Allreduce, of which each rank keeps its slice.
#pragma once
#include "coll/shm/allreduce_tiers.hpp"

namespace stretto::coll_shm {

// Keeps this rank's slice of what allreduce(parts) combines.
template <class Parts, class Begin, class Allreduce>
void keep_slice_of(shm::Call& call, const Parts& parts, Begin begin, Allreduce allreduce) {
  const std::uint64_t bytes = parts.bytes();
  const TemporaryBuffer aside(bytes);
  if (aside.missing()) return call.fail(Status::no_memory);
  allreduce(parts.with(parts.own(0, bytes), plain(aside.get(), bytes)));
  if (call.status() != Status::ok) return;
  const int rank = call.whole().rank();
  const std::uint64_t first = begin(rank), length = begin(rank + 1) - first;
  region_copy(parts.out(0, length), plain(aside.get() + first, length));
}

template <class Parts, class Begin>
void reduce_scatter_tiers(shm::Call& call, const Parts& parts, Begin begin, const Tiers& tiers) {
  keep_slice_of(call, parts, begin, [&](const Parts& whole) { allreduce_tiers(call, whole, tiers); });
}

}  // namespace stretto::coll_shm
