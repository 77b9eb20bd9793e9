// SPDX-License-Identifier: BSD-3-Clause
// Reductions over shared memory: which algorithm serves a call. `named` is the one that a rule
// names, null: policy.hpp decides.
#pragma once
#include "coll/shm/allreduce_flat.hpp"
#include "coll/shm/allreduce_slices.hpp"
#include "coll/shm/manifest.hpp"
#include "coll/shm/reduce_root.hpp"
#include "coll/shm/reduce_scatter_slices.hpp"
#include "coll/shm/reduce_slices.hpp"
#include "coll/shm/scan_chain.hpp"
#include "coll/shm/scan_flat.hpp"

namespace stretto::coll_shm {

inline void go(shm::Call& call, DataPath path) { call.go(static_cast<unsigned>(path)); }

template <class Parts>
void allreduce_parts(shm::Call& call, const Parts& parts, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  if (goes_whole(named, allreduces_flat(parts.bytes()))) return allreduce_flat(call, parts);
  go(call, DataPath::slices);
  allreduce_slices(call, parts);
}

template <class Parts>
void reduce_parts(shm::Call& call, const Parts& parts, int root, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  if (goes_whole(named, reduces_at_root(parts.bytes(), call.team().size(), parts.least_ranks_to_split())))
    return reduce_root(call, parts, root);
  go(call, DataPath::slices);
  reduce_slices(call, parts, root);
}

template <class Parts>
void scan_parts(shm::Call& call, const Parts& parts, bool exclusive, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  if (goes_whole(named, scans_flat(parts.bytes(), call.team().size()))) return scan_flat(call, parts, exclusive);
  go(call, DataPath::chain);
  scan_chain(call, parts, exclusive);
}

}  // namespace stretto::coll_shm
