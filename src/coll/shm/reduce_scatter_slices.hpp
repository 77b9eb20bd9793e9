// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter: rank d combines slice d of all contributions, which is its result.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

// Each rank of call.team() combines its slice of all contributions in `result`.
template <class Parts, class Begin>
void combine_slices(shm::Call& call, const Parts& parts, Begin begin, const Region& result) {
  shm::Team& team = call.team();
  const std::uint64_t at = begin(team.rank());
  start_parts(call, parts, begin, slice_cut(team, parts), team.size());
  if (outgoing_done(team) && parts.combine_whole(call, From::channels, at, result)) return;
  typename Parts::Combiner slice = parts.combiner(team, From::channels, 0, team.size(), at, result);
  run_together(
      call,
      [&] {
        const bool moved = step_in_order(call);
        return (!slice.done() && slice.step(call)) || moved;
      },
      [&] { return outgoing_done(team) && slice.done(); },
      [&](int peer) { return unsent(team, peer) || slice.misses(peer); });
}

template <class Parts, class Begin>
void reduce_scatter_slices(shm::Call& call, const Parts& parts, Begin begin) {
  const int rank = call.team().rank();
  const std::uint64_t length = begin(rank + 1) - begin(rank);
  // In place, the result lies over what goes to rank 0.
  const TemporaryBuffer aside(parts.in_place() ? length : 0);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region out = parts.out(0, length);
  const Region result = parts.in_place() ? plain(aside.get(), length) : out;
  combine_slices(call, parts, begin, result);
  if (parts.in_place() && call.status() == Status::ok) region_copy(out, result);
}

}  // namespace stretto::coll_shm
