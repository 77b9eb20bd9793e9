// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/manifest.hpp"

#include <array>
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
    // collective, name, file, path, serves
    {Collective::barrier,         "flat",          "barrier_flat.cpp",          DataPath::whole,  flat_barrier},
    {Collective::barrier,         "dissemination", "barrier_dissemination.cpp", DataPath::rounds, always},
    {Collective::bcast,           "board",         "bcast.cpp",                 DataPath::whole,  always},
    {Collective::gather,          "channels",      "gather.cpp",                DataPath::whole,  always},
    {Collective::scatter,         "channels",      "scatter.cpp",               DataPath::whole,  always},
    {Collective::allgather,       "boards",        "allgather.cpp",             DataPath::whole,  always},
    {Collective::alltoall,        "channels",      "alltoall.cpp",              DataPath::whole,  always},
    {Collective::reduce,          "root",          "reduce_root.hpp",           DataPath::whole,  at_root},
    {Collective::reduce,          "slices",        "reduce_slices.hpp",         DataPath::slices, always},
    {Collective::allreduce,       "flat",          "allreduce_flat.hpp",        DataPath::whole,  flat_allreduce},
    {Collective::allreduce,       "slices",        "allreduce_slices.hpp",      DataPath::slices, always},
    {Collective::reduce_scatter,  "slices",        "reduce_scatter_slices.hpp", DataPath::slices, always},
    {Collective::scan,            "flat",          "scan_flat.hpp",             DataPath::whole,  scans_flat},
    {Collective::scan,            "chain",         "scan_chain.hpp",            DataPath::chain,  always},
    {Collective::exscan,          "flat",          "scan_flat.hpp",             DataPath::whole,  scans_flat},
    {Collective::exscan,          "chain",         "scan_chain.hpp",            DataPath::chain,  always},
};
// clang-format on

// "an algorithm over shared memory was expected: shm:flat or shm:slices"
struct Expected {
  char text[96] = "";
  constexpr void add(const char* words) {
    char* at = text;
    while (*at != 0) ++at;
    while (*words != 0) *at++ = *words++;
  }
};
constexpr auto kExpected = [] {
  std::array<Expected, kCollectives> all;
  for (const Algorithm& algorithm : kManifest) {
    Expected& expected = all[static_cast<std::size_t>(algorithm.collective)];
    expected.add(*expected.text == 0 ? "an algorithm over shared memory was expected: " : " or ");
    expected.add(kPrefix);
    expected.add(algorithm.name);
  }
  return all;
}();

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

const char* expected(Collective collective) {
  return kExpected[static_cast<std::size_t>(coll::regular_form(collective))].text;
}

}  // namespace stretto::coll_shm
