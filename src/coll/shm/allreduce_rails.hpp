// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by rails: each level combines slices, and the next one combines slices of these. Then
// the ranks of each level share their slices of the result, from the highest level down. With
// groups of g ranks, m (g - 1)/g bytes come to a rank within its lowest group, each way, and m/g
// from afar.
#pragma once
#include "coll/shm/allreduce_flat.hpp"
#include "coll/shm/allreduce_slices.hpp"
#include "coll/shm/rails.hpp"

namespace stretto::coll_shm {

template <class Parts>
void allreduce_rails(shm::Call& call, const Parts& parts, const Tiers& rails, int level = 0) {
  shm::Team& team = *rails.teams[level];
  call.turn_to(team);
  if (rails.is_top(level)) {
    const bool few = parts.bytes() * static_cast<unsigned>(team.size() - 1) <= kTuning.rails_flat_bytes;
    return few ? allreduce_flat(call, parts) : allreduce_slices(call, parts, call.team().size());
  }
  const int slices = rails.groups.slices(level), rank = team.rank();
  const auto begin = slices_of(parts, slices);
  const Region slice = parts.out(begin(rank), begin(rank + 1));
  combine_slices(call, parts, begin, slice);
  if (rank < slices && call.status() == Status::ok) {
    allreduce_rails(call, parts.with(slice, slice), rails, level + 1);
    call.turn_to(team);
  }
  if (call.status() == Status::ok) share_slices(call, parts, begin, slices);
}

}  // namespace stretto::coll_shm
