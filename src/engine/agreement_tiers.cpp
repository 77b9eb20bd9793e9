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
// as its ranks wait for their turns, and tiers take more turns. Without memory for so few words a
// rank cannot go on: the others use the tiers.
void Agreement::find_tiers() {
  Array<topo::Binding> bindings;
  int most_members = topo::Tier::kMostRanks;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].blocks.tiers[0] == 0) return refuse_tiers("a rank has another value, or no memory for tiers");
    if (comm_->crowded && all_[r].tiers_wanted == 0)
      return refuse_tiers("fewer processors than ranks, and a rank does not ask for tiers there");
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
  if (tiers.sockets.groups.find(bootstrap_.rank, bootstrap_.size, bindings.data()))
    comm_->tier_choice.sockets = &tiers.sockets;
  comm_->tier_choice.placed = &tiers.placed;
  comm_->tier_choice.ranked = tiers.placed.groups.keep_rank_order() ? &tiers.placed : &tiers.ranked;
}

// Makes a team of ranks that all members know. This rank is number `index` of them. A member's
// directory is at offset_in(its blocks) in its segment.
template <class OffsetIn>
shm::Team* Agreement::make_team(int index, const int* ranks, int size, OffsetIn offset_in) {
  char* const own = process_.segment.base() + offset_in(mine_.blocks);
  shm::Team* const team = comm_->team->create_tier(index, ranks, size, own);
  if (team == nullptr) std::abort();  // its peers rely on this rank's part
  team->settle_tier();
  for (int m = 0; m < size; ++m) {
    if (m == index) continue;
    Introduction& member = all_[ranks[m]];
    team->connect_tier(m, process_.attachments.find(member.identity)->base + offset_in(member.blocks));
  }
  std::swap(offset_in(comm_->tiers->blocks), offset_in(mine_.blocks));
  return team;
}

// Makes the teams of `tiers`, in blocks from that of number `first` on. Their numbers are the same
// on all members of a group. The caller holds the lock.
void Agreement::make_teams(coll_shm::Tiers& tiers, int first) {
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const topo::Tier& group = tiers.groups[tier];
    const auto offset_in = [&](TierBlocks& blocks) -> std::uint64_t& { return blocks.tiers[first + group.level]; };
    tiers.teams[tier] = make_team(group.index, group.members, group.size, offset_in);
  }
}

void Agreement::make_sockets(coll_shm::Sockets& sockets) {
  const topo::Sockets& groups = sockets.groups;
  const auto of = [&](int index, const Array<int>& ranks, std::uint64_t TierBlocks::* block) {
    return make_team(index, ranks.data(), static_cast<int>(ranks.size()),
                     [block](TierBlocks& blocks) -> std::uint64_t& { return blocks.*block; });
  };
  sockets.inside = of(groups.index(), groups.inside(), &TierBlocks::inside);
  if (!groups.across().empty()) sockets.across = of(groups.socket(), groups.across(), &TierBlocks::across);
}

void Agreement::make_tiers() {
  find_tiers();
  const Locked locked(process_.lock);
  if (comm_->tiers != nullptr) {
    make_teams(comm_->tiers->placed, 0);
    make_teams(comm_->tiers->ranked, topo::Tiers::kMost);
    if (comm_->tier_choice.sockets != nullptr) make_sockets(comm_->tiers->sockets);
  }
  release_tiers(process_, mine_.blocks, bootstrap_.size);
}

}  // namespace stretto::engine
