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

inline DataPath usual(bool is_whole, DataPath other) { return is_whole ? DataPath::whole : other; }
inline void go(shm::Call& call, DataPath path) { call.go(static_cast<unsigned>(path)); }

template <class Parts>
void allreduce_parts(shm::Call& call, const Parts& parts, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  const DataPath path = path_of(named, usual(allreduces_flat(parts.bytes()), DataPath::slices));
  if (path == DataPath::whole) return allreduce_flat(call, parts);
  go(call, path);
  allreduce_slices(call, parts);
}

template <class Parts>
void reduce_parts(shm::Call& call, const Parts& parts, int root, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  const bool at_root = reduces_at_root(parts.bytes(), call.team().size(), parts.least_ranks_to_split());
  const DataPath path = path_of(named, usual(at_root, DataPath::slices));
  if (path == DataPath::whole) return reduce_root(call, parts, root);
  go(call, path);
  reduce_slices(call, parts, root);
}

template <class Parts>
void scan_parts(shm::Call& call, const Parts& parts, bool exclusive, const Algorithm* named) {
  if (!parts.good()) return call.fail(Status::invalid);
  const DataPath path = path_of(named, usual(scans_flat(parts.bytes(), call.team().size()), DataPath::chain));
  if (path == DataPath::whole) return scan_flat(call, parts, exclusive);
  go(call, path);
  scan_chain(call, parts, exclusive);
}

}  // namespace stretto::coll_shm
