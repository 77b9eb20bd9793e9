// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/manifest.hpp"

#include <cstring>

#include "coll/algorithm.hpp"
#include "coll/shm/policy.hpp"

namespace stretto::coll_shm {
namespace {

bool always(std::uint64_t, int) { return true; }
bool flat_barrier(std::uint64_t, int ranks) { return barrier_is_flat(ranks); }
bool flat_allreduce(std::uint64_t bytes, int) { return allreduces_flat(bytes); }
bool at_root(std::uint64_t bytes, int ranks) { return reduces_at_root(bytes, ranks, kRanksToSplitByKernels); }

// clang-format off
// Of several that serve a call, the first one counts.
constexpr Algorithm kManifest[] = {
    // collective, name, file, serves
    {Collective::barrier,          "flat",          "barrier_flat.cpp",          flat_barrier},
    {Collective::barrier,          "dissemination", "barrier_dissemination.cpp", always},
    {Collective::bcast,            "board",         "bcast.cpp",                 always},
    {Collective::gather,           "channels",      "gather.cpp",                always},
    {Collective::scatter,          "channels",      "scatter.cpp",               always},
    {Collective::allgather,        "boards",        "allgather.cpp",             always},
    {Collective::alltoall,         "channels",      "alltoall.cpp",              always},
    {Collective::reduce,           "root",          "reduce_root.hpp",           at_root},
    {Collective::reduce,           "slices",        "reduce_slices.hpp",         always},
    {Collective::allreduce,        "flat",          "allreduce_flat.hpp",        flat_allreduce},
    {Collective::allreduce,        "slices",        "allreduce_slices.hpp",      always},
    {Collective::reduce_scatter,   "slices",        "reduce_scatter_slices.hpp", always},
    {Collective::scan,             "flat",          "scan_flat.hpp",             scans_flat},
    {Collective::scan,             "chain",         "scan_chain.hpp",            always},
    {Collective::exscan,           "flat",          "scan_flat.hpp",             scans_flat},
    {Collective::exscan,           "chain",         "scan_chain.hpp",            always},
};
// clang-format on

}  // namespace

std::span<const Algorithm> manifest() { return kManifest; }

const Algorithm* find_algorithm(Collective collective, const char* name) {
  for (const Algorithm& algorithm : kManifest) {
    if (algorithm.collective == coll::regular_form(collective) && std::strcmp(algorithm.name, name) == 0)
      return &algorithm;
  }
  return nullptr;
}

const Algorithm& algorithm_of(Collective collective, std::uint64_t bytes, int ranks) {
  const Algorithm* found = nullptr;
  for (const Algorithm& algorithm : kManifest) {
    const bool fits = algorithm.collective == coll::regular_form(collective) && algorithm.serves(bytes, ranks);
    if (fits && found == nullptr) found = &algorithm;
  }
  return *found;
}

}  // namespace stretto::coll_shm
