// SPDX-License-Identifier: BSD-3-Clause
// The groups of a communicator as collectives use them: topo/groups.hpp, and a team for each that
// this rank is in (shm/team.hpp). The algorithms for a whole team serve a tier as well, so a
// call goes up and down by calling them on one tier after the other.
//
// No rank waits for ever. A rank waits for members of one tier at a time. As in a flat call
// (together.hpp), such a member is late, or waits, or has given up, or has left without its part. A
// rank that gives up does so in all its tiers, and its peers see that in the tier where they wait.
// If all ranks go by tiers, each waits for ranks above or below it in the tree of groups, so waits
// form no circle. If some go another way, a waiting rank sees it: it looks at the queues of all
// ranks, not only at those of this tier.
#pragma once
#include "coll/shm/parts.hpp"
#include "shm/team.hpp"
#include "topo/groups.hpp"

namespace stretto::coll_shm {

// Groups, and this rank's team for each that it is in: tiers, or rails.
struct Teams {
  explicit Teams(const topo::Groups& all) : groups(all) {}

  const topo::Groups& groups;
  shm::Team* teams[topo::Groups::kMostLevels] = {};
};

// The tiers of a rank: those of its groups that it leads, and one more.
struct Tiers : Teams {
  using Teams::Teams;
  [[nodiscard]] int count() const { return groups.tiers(); }
  // Whether this rank leads that tier. It is then in the next one, unless it leads all.
  [[nodiscard]] bool leads(int tier) const { return groups[tier].index == 0; }
  [[nodiscard]] bool is_top(int tier) const { return groups.has_all(groups[tier]); }
  // Whether the lowest of all ranks leads that tier.
  [[nodiscard]] bool is_first(int tier) const { return groups[tier].members[0] == 0; }
  [[nodiscard]] int member_over(int tier, int rank) const { return groups.member_over(groups[tier], rank); }
};

// The tiers of a communicator, and what else decides. Without tiers it has none of these.
struct TierChoice {
  const Tiers* placed = nullptr;  // by caches, and by sockets where there are many
  const Tiers* deep = nullptr;    // by all levels: for long messages
  const Tiers* ranked = nullptr;  // groups of neighbouring ranks; the same, if those have that form
  const Tiers* rails = nullptr;   // by caches and sockets
  bool left_to_right = false;     // STRETTO_REPRODUCIBLE=rank
  bool crowded = false;           // fewer processors than ranks

  [[nodiscard]] bool any() const { return placed != nullptr; }
  // Those that a reduction may use. `in_order`: its operation does not commute. `rounds`: its
  // result depends on the order of combining.
  [[nodiscard]] const Tiers* of(bool in_order, bool rounds) const {
    if (left_to_right && rounds) return nullptr;
    return in_order ? ranked : placed;
  }
  [[nodiscard]] const Tiers* rails_of(bool in_order, bool rounds) const {
    const bool fit = rails != nullptr && rails->groups.slices(0) > 1 && (!in_order || rails->groups.keep_rank_order());
    return fit && !(left_to_right && rounds) ? rails : nullptr;
  }
};

// What the members of the highest tier have goes down to all others, from tier `tier` on: the last
// one that this rank was in.
inline void hand_down(shm::Call& call, const Region& region, const Tiers& tiers, int tier) {
  if (tiers.is_top(tier)) --tier;
  for (; tier >= 0 && call.status() == Status::ok; --tier) {
    shm::Team& team = *tiers.teams[tier];
    call.turn_to(team);
    tiers.leads(tier) ? send_together(call, team.board(), region)
                      : receive_together(call, team.member(0).board, region);
  }
}

}  // namespace stretto::coll_shm
