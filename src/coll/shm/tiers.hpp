// SPDX-License-Identifier: BSD-3-Clause
// The tiers of a communicator as collectives use them: groups (topo/tiers.hpp), and a team for each
// that this rank is in (shm/team.hpp). The algorithms for a whole team serve a tier as well, so a
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
#include "topo/sockets.hpp"
#include "topo/tiers.hpp"

namespace stretto::coll_shm {

struct Tiers {
  topo::Tiers groups;
  shm::Team* teams[topo::Tiers::kMost] = {};

  [[nodiscard]] int count() const { return groups.count(); }
  // Whether this rank leads that tier. It is then in the next one, unless it leads all.
  [[nodiscard]] bool leads(int tier) const { return groups[tier].index == 0; }
  [[nodiscard]] bool is_top(int tier) const { return groups[tier].has_all; }
  // Whether the lowest of all ranks leads that tier.
  [[nodiscard]] bool is_first(int tier) const { return groups[tier].members[0] == 0; }
};

// The ranks by socket, for long messages.
struct Sockets {
  topo::Sockets groups;
  shm::Team* inside = nullptr;  // the ranks of this socket
  shm::Team* across = nullptr;  // the ranks that have the same slice; null: this rank has none
};

// The tiers of a communicator. Without tiers it has none of these.
struct TierChoice {
  const Tiers* placed = nullptr;     // by caches and sockets
  const Tiers* ranked = nullptr;     // groups of neighbouring ranks; the same, if those have that form
  const Sockets* sockets = nullptr;  // null: ranks are not bound to several sockets
  bool left_to_right = false;        // STRETTO_REPRODUCIBLE=rank

  [[nodiscard]] bool any() const { return placed != nullptr; }
  [[nodiscard]] bool span_sockets() const { return any() && placed->groups.span_sockets(); }
  // Those that a reduction may use. `in_order`: its operation does not commute. `rounds`: its
  // result depends on the order of combining.
  [[nodiscard]] const Tiers* of(bool in_order, bool rounds) const {
    if (left_to_right && rounds) return nullptr;
    return in_order ? ranked : placed;
  }
  [[nodiscard]] const Sockets* sockets_of(bool in_order, bool rounds) const {
    const bool fit = sockets != nullptr && (!in_order || sockets->groups.keep_rank_order());
    return fit && !(left_to_right && rounds) ? sockets : nullptr;
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
