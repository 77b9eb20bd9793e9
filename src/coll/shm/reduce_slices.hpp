// SPDX-License-Identifier: BSD-3-Clause
// Long Reduce: rank d combines slice d of all contributions, and sends it to the root.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

// The combined slices follow the contributions through their owners' channels to the root. The
// first `owners` ranks have a slice each.
template <class Parts>
void reduce_slices(shm::Call& call, const Parts& parts, int root, int owners) {
  shm::Team& team = call.team();
  const auto begin = [&](int rank) { return slice_begin(parts, rank, owners); };
  const int rank = team.rank();
  const bool is_root = rank == root;
  const std::uint64_t length = begin(rank + 1) - begin(rank);
  const TemporaryBuffer aside(is_root ? 0 : length);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region result = is_root ? parts.out(begin(rank), begin(rank + 1)) : plain(aside.get(), length);
  const shm::Cut cut = slice_cut(team, parts);
  start_parts(call, parts, begin, cut, owners);
  typename Parts::Combiner slice = slice_combiner(team, parts, owners, result);
  shm::Outgoing to_root;
  if (!is_root && rank < owners) to_root.start(result, false, cut);
  for (int r = 0; r < team.size(); ++r) {
    shm::Incoming& in = team.states()[r].in;
    in.skip();
    if (is_root && r != root && r < owners) in.start(parts.out(begin(r), begin(r + 1)), false);
  }
  run_together(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        to_root.allow(slice.combined());
        // Results wait until all contributions are out. The root reads results last, and they would
        // keep slots from others.
        if (!to_root.done() && outgoing_done(team) && to_root.step(call, team.to(root))) moved = true;
        return (slice.done() && step_incoming(call, From::channels)) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && to_root.done() && incoming_done(team); },
      [&](int peer) {
        return unsent(team, peer) || (peer == root && !to_root.done()) || slice.misses(peer) ||
               (slice.done() && misses(team.states()[peer].in, team.channel(peer)));
      });
}

}  // namespace stretto::coll_shm
