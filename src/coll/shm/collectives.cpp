// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/collectives.hpp"

namespace stretto::coll_shm {

void barrier(shm::Call& call, const Selection& selection) {
  const TeamTraits members = traits_of(call.team().size(), selection.tiers);
  const DataPath path = path_of(selection.named, members, [&](const TeamTraits& all) {
    return all.ranks <= kTuning.barrier_flat_ranks ? by_use(call, barrier_path(all)) : barrier_path(all);
  });
  if (path == DataPath::whole) return barrier_flat(call);
  if (path == DataPath::root) return barrier_root(call);
  path == DataPath::tiers ? barrier_tiers(call, *selection.tiers.placed) : barrier_dissemination(call);
}

// Single copy has the root's own memory for its slots, so the message goes there directly.
void bcast(shm::Call& call, const Region& buffer, int root, bool good, const Selection& selection) {
  if (!selection.tiers.any()) return bcast_board(call, buffer, root, good);
  const std::uint64_t bytes = good ? buffer.bytes() : 0;  // as of poison
  const TeamTraits members = traits_of(call.team().size(), selection.tiers);
  const DataPath path = path_of(selection.named, members, [&](const TeamTraits& m) { return bcast_path(bytes, m); });
  const bool flat = path == DataPath::whole || bytes >= call.single_copy_from_bytes();
  bcast_tiers(call, buffer, root, good, selection.tiers, flat);
}

}  // namespace stretto::coll_shm
