// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/manifest.hpp"

#include <array>
#include <cstring>

#include "coll/algorithm.hpp"
#include "coll/shm/policy.hpp"

namespace stretto::coll_shm {
namespace {

bool always(std::uint64_t, const TeamTraits&) { return true; }
template <DataPath kPath>
bool barriers(std::uint64_t, const TeamTraits& members) {
  return barrier_path(members) == kPath;
}
template <DataPath kPath>
bool bcasts(std::uint64_t bytes, const TeamTraits& members) {
  return bcast_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool reduces(std::uint64_t bytes, const TeamTraits& members) {
  return reduce_path(bytes, members, kRanksToSplitByKernels) == kPath;
}
template <DataPath kPath>
bool allreduces(std::uint64_t bytes, const TeamTraits& members) {
  return allreduce_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool reduce_scatters(std::uint64_t bytes, const TeamTraits& members) {
  return reduce_scatter_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool gathers(std::uint64_t bytes, const TeamTraits& members) {
  return gather_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool allgathers(std::uint64_t bytes, const TeamTraits& members) {
  return allgather_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool alltoalls(std::uint64_t bytes, const TeamTraits& members) {
  return alltoall_path(bytes, members) == kPath;
}
template <DataPath kPath>
bool scans(std::uint64_t bytes, const TeamTraits& members) {
  return scan_path(bytes, members) == kPath;
}

// clang-format off
constexpr DataPath kWhole = DataPath::whole, kTiers = DataPath::tiers, kSlices = DataPath::slices;
constexpr DataPath kRails = DataPath::rails, kRoot = DataPath::root;
constexpr Algorithm kManifest[] = {
    // collective, name, file, path, serves
    {Collective::barrier,         "flat",          "barrier_flat.cpp",          kWhole,            barriers<kWhole>},
    {Collective::barrier,         "dissemination", "barrier_dissemination.cpp", DataPath::rounds,  barriers<DataPath::rounds>},
    {Collective::barrier,         "root",          "barrier_root.cpp",          kRoot,             barriers<kRoot>},
    {Collective::barrier,         "tiers",         "barrier_tiers.cpp",         kTiers,            barriers<kTiers>},
    {Collective::bcast,           "board",         "bcast_board.cpp",           kWhole,            bcasts<kWhole>},
    {Collective::bcast,           "tiers",         "bcast_tiers.cpp",           kTiers,            bcasts<kTiers>},
    {Collective::gather,          "channels",      "gather_channels.cpp",       kWhole,            gathers<kWhole>},
    {Collective::gather,          "tiers",         "gather_tiers.cpp",          kTiers,            gathers<kTiers>, true},
    {Collective::scatter,         "channels",      "scatter.cpp",               kWhole,            always},
    {Collective::allgather,       "boards",        "allgather.cpp",             kWhole,            allgathers<kWhole>},
    {Collective::allgather,       "rails",         "allgather_rails.cpp",       kRails,            allgathers<kRails>, true},
    {Collective::alltoall,        "channels",      "alltoall.cpp",              kWhole,            alltoalls<kWhole>},
    {Collective::alltoall,        "rails",         "alltoall_rails.cpp",        kRails,            alltoalls<kRails>, true},
    {Collective::neighbor_allgather, "channels",   "neighbors.cpp",             kWhole,            always},
    {Collective::neighbor_alltoall, "channels",    "neighbors.cpp",             kWhole,            always},
    {Collective::reduce,          "root",          "reduce_root.hpp",           kWhole,            reduces<kWhole>},
    {Collective::reduce,          "slices",        "reduce_slices.hpp",         kSlices,           reduces<kSlices>},
    {Collective::reduce,          "tiers",         "reduce_tiers.hpp",          kTiers,            reduces<kTiers>},
    {Collective::reduce,          "rails",         "reduce_rails.hpp",          kRails,            reduces<kRails>},
    {Collective::allreduce,       "flat",          "allreduce_flat.hpp",        kWhole,            allreduces<kWhole>},
    {Collective::allreduce,       "root",          "allreduce_root.hpp",        kRoot,             allreduces<kRoot>},
    {Collective::allreduce,       "slices",        "allreduce_slices.hpp",      kSlices,           allreduces<kSlices>},
    {Collective::allreduce,       "tiers",         "allreduce_tiers.hpp",       kTiers,            allreduces<kTiers>},
    {Collective::allreduce,       "rails",         "allreduce_rails.hpp",       kRails,            allreduces<kRails>},
    {Collective::reduce_scatter,  "root",          "reduce_scatter_root.hpp",   kRoot,             reduce_scatters<kRoot>},
    {Collective::reduce_scatter,  "slices",        "reduce_scatter_slices.hpp", kSlices,           reduce_scatters<kSlices>},
    {Collective::reduce_scatter,  "tiers",         "reduce_scatter_tiers.hpp",  kTiers,            reduce_scatters<kTiers>},
    {Collective::reduce_scatter,  "rails",         "reduce_scatter_rails.hpp",  kRails,            reduce_scatters<kRails>},
    {Collective::scan,            "flat",          "scan_flat.hpp",             kWhole,            scans<kWhole>},
    {Collective::scan,            "chain",         "scan_chain.hpp",            DataPath::chain,   scans<DataPath::chain>},
    {Collective::scan,            "tiers",         "scan_tiers.hpp",            kTiers,            scans<kTiers>},
    {Collective::exscan,          "flat",          "scan_flat.hpp",             kWhole,            scans<kWhole>},
    {Collective::exscan,          "chain",         "scan_chain.hpp",            DataPath::chain,   scans<DataPath::chain>},
    {Collective::exscan,          "tiers",         "scan_tiers.hpp",            kTiers,            scans<kTiers>},
};
// clang-format on

// "an algorithm over shared memory was expected: shm:flat or shm:slices"
struct Expected {
  char text[160] = "";
  constexpr void add(const char* words) {
    char* at = text;
    while (*at != 0) ++at;
    while (*words != 0) *at++ = *words++;
  }
};
// By whether the collective has parts of several lengths.
template <bool kIrregular>
constexpr auto kExpected = [] {
  std::array<Expected, kCollectives> all;
  for (const Algorithm& algorithm : kManifest) {
    if (kIrregular && algorithm.regular) continue;
    Expected& expected = all[static_cast<std::size_t>(algorithm.collective)];
    expected.add(*expected.text == 0 ? "an algorithm over shared memory was expected: " : " or ");
    expected.add(kPrefix);
    expected.add(algorithm.name);
  }
  return all;
}();

bool is_of(const Algorithm& algorithm, Collective collective) {
  const Collective regular = coll::regular_form(collective);
  return algorithm.collective == regular && (collective == regular || !algorithm.regular);
}

}  // namespace

std::span<const Algorithm> manifest() { return kManifest; }

const Algorithm* find_algorithm(Collective collective, const char* name) {
  for (const Algorithm& algorithm : kManifest) {
    if (is_of(algorithm, collective) && std::strcmp(algorithm.name, name) == 0) return &algorithm;
  }
  return nullptr;
}

const Algorithm& algorithm_of(Collective collective, std::uint64_t bytes, const TeamTraits& members) {
  const Algorithm* first = nullptr;
  for (const Algorithm& algorithm : kManifest) {
    if (!is_of(algorithm, collective)) continue;
    if (algorithm.serves(bytes, members)) return algorithm;
    if (first == nullptr) first = &algorithm;
  }
  return *first;  // a v-form, whose regular form would go by an algorithm that it has not
}

const char* expected(Collective collective) {
  const Collective regular = coll::regular_form(collective);
  const auto& all = collective == regular ? kExpected<false> : kExpected<true>;
  return all[static_cast<std::size_t>(regular)].text;
}

}  // namespace stretto::coll_shm
