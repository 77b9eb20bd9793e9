// SPDX-License-Identifier: BSD-3-Clause
// Tiers of a new communicator: they follow from what the members have said in exchange 1.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "engine/agreement.hpp"

namespace stretto::engine {

// All members find the same groups, or none. With fewer processors than ranks a call takes as long
// as its ranks wait for their turns, and tiers take more turns. Without memory for so few words a
// rank cannot go on: the others use the tiers.
void Agreement::find_tiers() {
  Array<topo::Binding> bindings;
  int most_members = topo::Tier::kMostRanks;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].tier_offsets[0] == 0 || (comm_->crowded && all_[r].tiers_wanted == 0)) return;
    most_members = std::min(most_members, all_[r].tier_members);
    bindings.push(all_[r].binding);
  }
  void* const memory = std::malloc(sizeof(CommTiers));
  if (bindings.failed() || memory == nullptr) std::abort();
  CommTiers& tiers = *(comm_->tiers = new (memory) CommTiers);
  const auto find = [&](coll_shm::Tiers& found, const topo::Binding* bound) {
    return found.groups.find(bootstrap_.rank, bootstrap_.size, bound, most_members);
  };
  if (!find(tiers.placed, bindings.data()) && !find(tiers.placed, nullptr)) std::abort();
  if (!tiers.placed.groups.keep_rank_order() && !find(tiers.ranked, nullptr)) std::abort();
  comm_->tier_choice.placed = &tiers.placed;
  comm_->tier_choice.ranked = tiers.placed.groups.keep_rank_order() ? &tiers.placed : &tiers.ranked;
}

// Makes the teams of `tiers`, in blocks from that of number `first` on. Their numbers are the same
// on all members of a group. The caller holds the lock.
void Agreement::make_teams(coll_shm::Tiers& tiers, int first) {
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const topo::Tier& group = tiers.groups[tier];
    const int block = first + group.level;
    char* const own = process_.segment.base() + mine_.tier_offsets[block];
    shm::Team* const team =
        comm_->team->create_tier(group.index, group.members, group.size, own, topo::Tier::kMostMembers);
    if (team == nullptr) std::abort();  // as above
    tiers.teams[tier] = team;
    team->settle_tier();
    for (int m = 0; m < group.size; ++m) {
      if (m == group.index) continue;
      const Hello& member = all_[group.members[m]];
      const char* const segment = process_.attachments.find(member.identity)->base;
      team->connect_tier(m, segment + member.tier_offsets[block]);
    }
    std::swap(comm_->tiers->offsets[block], mine_.tier_offsets[block]);
  }
}

void Agreement::make_tiers() {
  find_tiers();
  const Locked locked(process_);
  if (comm_->tiers != nullptr) {
    make_teams(comm_->tiers->placed, 0);
    make_teams(comm_->tiers->ranked, topo::Tiers::kMost);
  }
  release_tiers(process_, mine_.tier_offsets);
}

}  // namespace stretto::engine
