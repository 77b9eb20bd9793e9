// SPDX-License-Identifier: BSD-3-Clause
// The algorithms over shared memory by name, and which of them serves a call. (coll/manifest.cpp
// has those of schedules.) Each of them can serve any length and any number of ranks.
#pragma once
#include <cstdint>
#include <span>

#include "base/collective.hpp"
#include "coll/shm/policy.hpp"

namespace stretto::coll_shm {

struct Algorithm {
  Collective collective;  // the regular form, which stands for the v-form as well
  const char* name;
  const char* file;  // of its function, in this folder
  DataPath path;     // tells it from the collective's others
  // Whether it serves calls of so many bytes among these ranks, as a plan counts bytes, where no
  // rule names another. For reductions: by kernels.
  bool (*serves)(std::uint64_t bytes, const TeamTraits& members);
  bool regular = false;  // it does not serve the v-form
};
// Rules and the tool name an algorithm "shm:" and its name.
inline constexpr char kPrefix[] = "shm:";

std::span<const Algorithm> manifest();
// Null: there is none of this name.
const Algorithm* find_algorithm(Collective collective, const char* name);
// The one that serves the call where no rule names one. The v-form of a collective finds its
// regular form's algorithms.
const Algorithm& algorithm_of(Collective collective, std::uint64_t bytes, const TeamTraits& members);
// Says that one of a collective's algorithms was expected, and lists them.
const char* expected(Collective collective);

// How the data of a call go: by the algorithm that a rule names, or as is usual among these ranks.
// `usual(members)` tells. A communicator without tiers goes as is usual where a rule names them.
template <class Usual>
DataPath path_of(const Algorithm* named, const TeamTraits& members, Usual usual) {
  const bool open = named != nullptr && (named->path != DataPath::tiers || members.tiers) &&
                    (named->path != DataPath::rails || members.rails != 0);
  return open ? named->path : usual(members);
}

}  // namespace stretto::coll_shm
