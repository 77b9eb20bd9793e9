// SPDX-License-Identifier: BSD-3-Clause
// Reduce by rails. Each lowest group combines slices. Each slice then goes up its rail, level by
// level, to a rank of the root's lowest group. Those ranks send their slices to the root.
#pragma once
#include "coll/shm/rails.hpp"
#include "coll/shm/reduce_root.hpp"

namespace stretto::coll_shm {

// The root's lowest group is on rails of all levels.
template <class Parts>
void reduce_rails(shm::Call& call, const Parts& parts, int root, const Tiers& rails) {
  const topo::Groups& groups = rails.groups;
  shm::Team& team = *rails.teams[0];
  const int slices = groups.slices(0), rank = team.rank();
  const auto begin = slices_of(parts, slices);
  const bool is_root = call.whole().rank() == root;
  const std::uint64_t length = begin(rank + 1) - begin(rank);
  const TemporaryBuffer aside(is_root ? 0 : length);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region slice = is_root ? parts.out(begin(rank), begin(rank + 1)) : plain(aside.get(), length);
  call.turn_to(team);
  combine_slices(call, parts, begin, slice);
  for (int level = 1; level < groups.count() && call.status() == Status::ok; ++level) {
    const int next = groups.number(level, root);
    call.turn_to(*rails.teams[level]);
    reduce_root(call, parts.with(slice, slice), next);
    if (call.team().rank() != next) return;
  }
  const int to = rails.member_over(0, root);
  call.turn_to(team);
  if (to >= 0 && call.status() == Status::ok) collect_slices(call, parts, begin, slices, slice, to);
}

}  // namespace stretto::coll_shm
