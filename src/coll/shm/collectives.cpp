// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/collectives.hpp"

#include "coll/algorithm.hpp"

namespace stretto::coll_shm {

void barrier(shm::Call& call, const Selection& selection) {
  const bool no_choice = selection.named == nullptr && !selection.tiers.any();
  if (no_choice && call.team().size() <= kTuning.crowded_flat_ranks) [[likely]]
    return barrier_flat(call);
  const TeamTraits members = traits_of(call.team().size(), selection.tiers);
  const DataPath path = path_of(selection.named, members, barrier_path);
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

namespace {

// Whether the parts all have one length, which all ranks know, and may go another way than straight
// to where they belong.
bool has_ways(const shm::Call& call, const Selection& selection) {
  if (!selection.tiers.any()) [[likely]]
    return false;
  const auto as = static_cast<Collective>(call.tag() & 0xff);
  return as == coll::regular_form(as);
}
// Null: the parts go by no rails.
const Tiers* rails_for(const shm::Call& call, const Selection& selection) {
  return has_ways(call, selection) ? selection.tiers.rails_of(false, false) : nullptr;
}

// `rails`: of the call, if it may go by them.
template <class Usual>
DataPath path_by(shm::Call& call, const Selection& selection, const Tiers* rails, std::uint64_t part_bytes,
                 Usual usual) {
  const TeamTraits members = traits_of(call.team().size(), selection.tiers, rails);
  const std::uint64_t bytes = part_bytes * static_cast<unsigned>(members.ranks);
  const DataPath path = path_of(selection.named, members, [&](const TeamTraits& m) { return usual(bytes, m); });
  call.go(static_cast<unsigned>(path));
  if (path != DataPath::whole) call.expect_lengths();
  return path;
}

}  // namespace

// Receivers may have declared more than is sent, so what a rank sends decides. That leaves Scatter
// without a choice: only its root knows.
//
// By tiers of neighbouring ranks, whose blocks lie one after the other.
void gather(shm::Call& call, const Region& send, const Blocks& receive, int root, bool in_place, bool good,
            const Selection& selection) {
  if (!has_ways(call, selection)) return gather_channels(call, send, receive, root, in_place, good, false);
  if (!good) return call.fail(Status::invalid);
  const Region own = in_place ? receive.at(root) : send;
  const DataPath path = path_by(call, selection, nullptr, own.bytes(), gather_path);
  path == DataPath::tiers ? gather_tiers(call, own, receive, root, *selection.tiers.ranked)
                          : gather_channels(call, send, receive, root, in_place, true, true);
}

void allgather(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good,
               const Selection& selection) {
  const Tiers* const rails = rails_for(call, selection);
  if (rails == nullptr) return allgather_boards(call, send, receive, in_place, good, false);
  if (!good) return call.fail(Status::invalid);
  const Region own = in_place ? receive.at(call.team().rank()) : send;
  const DataPath path = path_by(call, selection, rails, own.bytes(), allgather_path);
  path == DataPath::rails ? allgather_rails(call, own, receive, *rails)
                          : allgather_boards(call, send, receive, in_place, true, true);
}

void alltoall(shm::Call& call, const Blocks& send, const Blocks& receive, bool in_place, bool good,
              const Selection& selection) {
  const Tiers* const rails = rails_for(call, selection);
  if (rails == nullptr) return alltoall_channels(call, send, receive, in_place, good, false);
  if (!good) return call.fail(Status::invalid);
  const Blocks& own = in_place ? receive : send;
  const DataPath path = path_by(call, selection, rails, own.at(0).bytes(), alltoall_path);
  path == DataPath::rails ? alltoall_rails(call, own, receive, *rails)
                          : alltoall_channels(call, send, receive, in_place, true, true);
}

}  // namespace stretto::coll_shm
