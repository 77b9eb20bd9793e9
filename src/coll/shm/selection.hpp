// SPDX-License-Identifier: BSD-3-Clause
// What a communicator lets its calls choose from.
#pragma once
#include "coll/shm/manifest.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

struct Selection {
  const Algorithm* named;  // by a rule; null: policy.hpp decides
  const TierChoice& tiers;
};

// Of a team that goes by no rails.
inline TeamTraits traits_of(int ranks, const TierChoice& tiers) {
  const bool any = tiers.any();
  TeamTraits members;
  members.ranks = ranks;
  members.tiers = any;
  members.span_sockets = any && tiers.placed->groups.span_sockets();
  members.wide_caches = any && tiers.placed->groups.split_caches();
  members.crowded = tiers.crowded;
  return members;
}

// Of one whose call may go by these rails.
inline TeamTraits traits_of(int ranks, const TierChoice& tiers, const Tiers* rails) {
  TeamTraits members = traits_of(ranks, tiers);
  members.rails = rails == nullptr ? 0 : rails->groups.slices(0);
  members.even_rails = rails != nullptr && rails->groups.all_on_rails();
  return members;
}

}  // namespace stretto::coll_shm
