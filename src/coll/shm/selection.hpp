// SPDX-License-Identifier: BSD-3-Clause
// What a communicator lets its calls choose from.
#pragma once
#include "coll/shm/manifest.hpp"
#include "coll/shm/tiers.hpp"
#include "shm/call.hpp"

namespace stretto::coll_shm {

struct Selection {
  const Algorithm* named;  // by a rule; null: policy.hpp decides
  const TierChoice& tiers;
};

// Of a team that goes by no rails.
inline TeamTraits traits_of(int ranks, const TierChoice& tiers) {
  const bool any = tiers.any();
  return {ranks, any,          any && tiers.placed->groups.span_sockets(), any && tiers.placed->groups.split_caches(),
          0,     tiers.crowded};
}

// Where ranks share processors, a communicator that is used much goes the way that takes more memory
// and fewer turns. All ranks count the same calls.
inline DataPath by_use(const shm::Call& call, DataPath path) {
  return path == DataPath::root && call.number() > kTuning.crowded_root_calls ? DataPath::whole : path;
}

}  // namespace stretto::coll_shm
