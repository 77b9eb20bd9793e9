// SPDX-License-Identifier: BSD-3-Clause
// The algorithms over shared memory by name, and which of them serves a call. (coll/manifest.cpp
// has those of schedules.)
#pragma once
#include <cstdint>
#include <span>

#include "base/collective.hpp"

namespace stretto::coll_shm {

struct Algorithm {
  Collective collective;  // the regular form, which stands for the v-form as well
  const char* name;
  const char* file;  // of its function, in this folder
  // Whether it serves calls of so many bytes among so many ranks, as a plan counts bytes. For
  // reductions: by kernels.
  bool (*serves)(std::uint64_t bytes, int ranks);
};
std::span<const Algorithm> manifest();
// Null: there is none of this name.
const Algorithm* find_algorithm(Collective collective, const char* name);
// The one that serves the call. The v-form of a collective finds its regular form's algorithms.
const Algorithm& algorithm_of(Collective collective, std::uint64_t bytes, int ranks);

}  // namespace stretto::coll_shm
