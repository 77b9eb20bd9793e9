// SPDX-License-Identifier: BSD-3-Clause
// Reductions over shared memory: which algorithm serves a call.
#pragma once
#include "coll/shm/allreduce_flat.hpp"
#include "coll/shm/allreduce_rails.hpp"
#include "coll/shm/allreduce_root.hpp"
#include "coll/shm/allreduce_slices.hpp"
#include "coll/shm/allreduce_tiers.hpp"
#include "coll/shm/manifest.hpp"
#include "coll/shm/reduce_rails.hpp"
#include "coll/shm/reduce_root.hpp"
#include "coll/shm/reduce_scatter_rails.hpp"
#include "coll/shm/reduce_scatter_root.hpp"
#include "coll/shm/reduce_scatter_slices.hpp"
#include "coll/shm/reduce_scatter_tiers.hpp"
#include "coll/shm/reduce_slices.hpp"
#include "coll/shm/reduce_tiers.hpp"
#include "coll/shm/scan_chain.hpp"
#include "coll/shm/scan_flat.hpp"
#include "coll/shm/scan_tiers.hpp"
#include "coll/shm/selection.hpp"

namespace stretto::coll_shm {

inline void go(shm::Call& call, DataPath path) { call.go(static_cast<unsigned>(path)); }

template <class Parts>
const Tiers* tiers_for(const Selection& selection, const Parts& parts) {
  return selection.tiers.of(parts.in_order(), parts.rounds());
}
template <class Parts>
const Tiers* rails_for(const Selection& selection, const Parts& parts) {
  return selection.tiers.rails_of(parts.in_order(), parts.rounds());
}
inline TeamTraits members_of(const shm::Call& call, const Selection& selection, const Tiers* tiers,
                             const Tiers* rails = nullptr) {
  TeamTraits members;
  members.ranks = call.team().size();
  members.tiers = tiers != nullptr;
  members.rails = rails == nullptr ? 0 : rails->groups.slices(0);
  members.crowded = selection.tiers.crowded;
  return members;
}

template <class Parts>
void allreduce_parts(shm::Call& call, const Parts& parts, const Selection& selection) {
  if (!parts.good()) return call.fail(Status::invalid);
  const Tiers* const tiers = tiers_for(selection, parts);
  const Tiers* const rails = rails_for(selection, parts);
  const TeamTraits members = members_of(call, selection, tiers, rails);
  const DataPath path =
      path_of(selection.named, members, [&](const TeamTraits& all) { return allreduce_path(parts.bytes(), all); });
  go(call, path);
  if (path == DataPath::rails) return allreduce_rails(call, parts, *rails);
  if (path == DataPath::whole) return allreduce_flat(call, parts);
  if (path == DataPath::root) return allreduce_root(call, parts);
  path == DataPath::tiers ? allreduce_tiers(call, parts, *tiers) : allreduce_slices(call, parts, slice_owners(members));
}

template <class Parts>
void reduce_parts(shm::Call& call, const Parts& parts, int root, const Selection& selection) {
  if (!parts.good()) return call.fail(Status::invalid);
  const Tiers* const tiers = tiers_for(selection, parts);
  const Tiers* rails = rails_for(selection, parts);
  if (rails != nullptr && !rails->groups.on_rails(root)) rails = nullptr;
  const TeamTraits members = members_of(call, selection, tiers, rails);
  const DataPath path = path_of(selection.named, members, [&](const TeamTraits& all) {
    return reduce_path(parts.bytes(), all, parts.least_ranks_to_split());
  });
  go(call, path);
  if (path == DataPath::rails) return reduce_rails(call, parts, root, *rails);
  if (path == DataPath::whole) return reduce_root(call, parts, root);
  path == DataPath::tiers ? reduce_tiers(call, parts, root, *tiers)
                          : reduce_slices(call, parts, root, slice_owners(members));
}

template <class Parts, class Begin>
void reduce_scatter_parts(shm::Call& call, const Parts& parts, Begin begin, const Selection& selection) {
  if (!parts.good()) return call.fail(Status::invalid);
  const Tiers* const tiers = tiers_for(selection, parts);
  const Tiers* const rails = rails_for(selection, parts);
  const DataPath path = path_of(selection.named, members_of(call, selection, tiers, rails),
                                [&](const TeamTraits& members) { return reduce_scatter_path(parts.bytes(), members); });
  go(call, path);
  if (path == DataPath::root) return reduce_scatter_root(call, parts, begin);
  if (path == DataPath::rails) return reduce_scatter_rails(call, parts, begin, *rails);
  path == DataPath::tiers ? reduce_scatter_tiers(call, parts, begin, *tiers)
                          : reduce_scatter_slices(call, parts, begin);
}

// Tiers that keep the ranks' order.
template <class Parts>
void scan_parts(shm::Call& call, const Parts& parts, bool exclusive, const Selection& selection) {
  if (!parts.good()) return call.fail(Status::invalid);
  const Tiers* const tiers = selection.tiers.of(true, parts.rounds());
  const DataPath path = path_of(selection.named, members_of(call, selection, tiers),
                                [&](const TeamTraits& members) { return scan_path(parts.bytes(), members); });
  go(call, path);
  if (path == DataPath::whole) return scan_flat(call, parts, exclusive);
  path == DataPath::tiers ? scan_tiers(call, parts, exclusive, *tiers) : scan_chain(call, parts, exclusive);
}

}  // namespace stretto::coll_shm
