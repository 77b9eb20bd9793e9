// SPDX-License-Identifier: BSD-3-Clause
// Short Reduce_scatter of many ranks that share processors: as an Allreduce by rank 0, of which
// each rank keeps its slice.
#pragma once
#include "coll/shm/allreduce_root.hpp"
#include "coll/shm/reduce_scatter_tiers.hpp"

namespace stretto::coll_shm {

template <class Parts, class Begin>
void reduce_scatter_root(shm::Call& call, const Parts& parts, Begin begin) {
  keep_slice_of(call, parts, begin, [&](const Parts& whole) { allreduce_root(call, whole); });
}

}  // namespace stretto::coll_shm
