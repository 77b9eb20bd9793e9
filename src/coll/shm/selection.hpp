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

}  // namespace stretto::coll_shm
