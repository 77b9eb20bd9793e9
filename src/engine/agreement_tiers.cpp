// SPDX-License-Identifier: BSD-3-Clause
// Tiers of a new communicator: they follow from what the members have said in exchange 1.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/demands.hpp"
#include "engine/agreement.hpp"

namespace stretto::engine {

void Agreement::refuse_tiers(const char* why) const {
  const bool asks = mine_.collectives != 0 && bootstrap_.size >= process_.settings.tiers_from_ranks;
  if (asks) demand_refused(Option::tiers, bootstrap_.size, why);
}

// All members find the same groups, or none. With fewer processors than ranks a call takes as long
// as its ranks wait for their turns, and tiers take more turns. The caller holds the lock.
void Agreement::find_tiers() {
  Array<topo::Binding> bindings;
  int most_members = topo::Groups::kMostRanks;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].blocks.placed[0] == 0) return refuse_tiers("a rank has another value, or no memory for tiers");
    if (comm_->crowded && all_[r].tiers_wanted == 0)
      return refuse_tiers("fewer processors than ranks, and a rank does not ask for tiers there");
    most_members = std::min(most_members, all_[r].tier_members);
    bindings.push(all_[r].binding);
  }
  void* const memory = std::malloc(sizeof(CommTiers));
  if (bindings.failed() || memory == nullptr) std::abort();
  GroupSets& sets = group_sets_take(process_.group_sets, bootstrap_.rank, most_members, bindings);
  CommTiers& tiers = *(comm_->tiers = new (memory) CommTiers(sets));
  const bool keep_order = tiers.placed.groups.keep_rank_order();
  comm_->tier_choice = {&tiers.placed, &tiers.deep, keep_order ? &tiers.placed : &tiers.ranked,
                        &tiers.rails,  false,       comm_->crowded};
}

// Makes the team of a group. All its members know which one it is, and have a directory at
// offset_in(their blocks) in their segments.
template <class OffsetIn>
shm::Team* Agreement::make_team(const topo::Group& group, OffsetIn offset_in) {
  char* const own = process_.segment.base() + offset_in(mine_.blocks);
  shm::Team* const team = comm_->team->create_tier(group.index, group.members.data(), group.size(), own);
  if (team == nullptr) std::abort();  // its peers rely on this rank's part
  team->settle_tier();
  for (int m = 0; m < group.size(); ++m) {
    if (m == group.index) continue;
    Introduction& member = all_[group.members[static_cast<std::size_t>(m)]];
    team->connect_tier(m, process_.attachments.find(member.identity)->base + offset_in(member.blocks));
  }
  std::swap(offset_in(comm_->tiers->blocks), offset_in(mine_.blocks));
  return team;
}

// Makes the teams of `tiers`. Groups with the members of one that has a team share it. The caller
// holds the lock.
void Agreement::make_teams(coll_shm::Tiers& tiers, std::uint64_t (TierBlocks::*blocks)[TierBlocks::kLevels],
                           const coll_shm::Tiers* others) {
  for (int i = 0; i < tiers.groups.count(); ++i) {
    const topo::Group& group = tiers.groups[i];
    const auto is_same = [&](const topo::Group& other) {
      return std::equal(group.members.begin(), group.members.end(), other.members.begin(), other.members.end());
    };
    for (int t = 0; others != nullptr && t < others->groups.count(); ++t) {
      if (is_same(others->groups[t])) tiers.teams[i] = others->teams[t];
    }
    if (tiers.teams[i] != nullptr) continue;
    tiers.teams[i] = make_team(group, [&](TierBlocks& of) -> std::uint64_t& { return (of.*blocks)[group.level]; });
  }
}

void Agreement::make_tiers() {
  const Locked locked(process_.lock);
  find_tiers();
  if (CommTiers* const tiers = comm_->tiers; tiers != nullptr) {
    make_teams(tiers->placed, &TierBlocks::placed, nullptr);
    make_teams(tiers->deep, &TierBlocks::deep, &tiers->placed);
    make_teams(tiers->ranked, &TierBlocks::ranked, &tiers->placed);
    make_teams(tiers->rails, &TierBlocks::rails, &tiers->placed);
  }
  release_tiers(process_, mine_.blocks, bootstrap_.size);
}

}  // namespace stretto::engine
