// SPDX-License-Identifier: BSD-3-Clause
// Scatter of short blocks by tiers, as a Gather backwards (gather_tiers.cpp): the root sends all to
// the lowest rank, and a leader hands on to each member what is for the ranks below it.
#include "coll/shm/blocks_of_tiers.hpp"
#include "coll/shm/collectives.hpp"

namespace stretto::coll_shm {

void scatter_tiers(shm::Call& call, const Blocks& send, const Region& receive, int root, bool in_place,
                   const Tiers& tiers) {
  shm::Team& whole = call.whole();
  const int self = whole.rank();
  const bool is_root = self == root;
  BlocksOfTiers blocks(is_root ? send.at(root) : receive, tiers, whole.size(), tiers.leads(0) || is_root);
  if (blocks.missing()) return call.fail(Status::no_memory);
  if (is_root) {
    for (int rank = 0; rank < whole.size(); ++rank) region_copy(blocks.of_rank(rank), send.at(rank));
    if (root != 0) send_together(call, whole.to(0), blocks.all());
  } else if (self == 0) {
    receive_together(call, whole.channel(root), blocks.all());
  }
  for (int tier = tiers.count() - 1; tier >= 0 && call.status() == Status::ok; --tier) {
    shm::Team& team = *tiers.teams[tier];
    const int index = tiers.groups[tier].index;
    call.turn_to(team);
    if (index != 0) {
      const bool is_last = tier == 0 && !is_root;
      receive_together(call, team.channel(0), is_last ? receive : blocks.below(tier, index));
      continue;
    }
    for (int member = 1; member < team.size() && call.status() == Status::ok; ++member)
      send_together(call, team.to(member), blocks.below(tier, member));
  }
  call.turn_to(whole);
  const bool has_it = in_place || !(is_root || tiers.leads(0));
  if (call.status() != Status::ok || has_it) return;
  region_copy(receive, blocks.of_rank(self));
  if (blocks.bytes() > receive.bytes()) call.fail(Status::truncated);
}

}  // namespace stretto::coll_shm
