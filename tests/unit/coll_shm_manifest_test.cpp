// SPDX-License-Identifier: BSD-3-Clause
// The manifest of algorithms over shared memory: every collective has one for each call, and each
// names its file.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "base/tuning.hpp"
#include "coll/algorithm.hpp"
#include "coll/shm/manifest.hpp"

namespace {

using namespace stretto;

TEST(CollShmManifest, EveryCallHasAnAlgorithm) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int ranks : {2, 3, 64, 1000}) {
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        for (const int groups : {0, 1, 2, 3}) {
          const bool tiers = groups % 2 != 0, crowded = groups / 2 != 0;
          const coll_shm::TeamTraits members = {ranks, tiers, tiers, false, 0, false, crowded};
          const coll_shm::Algorithm& found = coll_shm::algorithm_of(collective, bytes, members);
          // A v-form lacks some of its regular form's algorithms.
          EXPECT_TRUE(found.serves(bytes, members) || coll::regular_form(collective) != collective);
          EXPECT_EQ(coll_shm::find_algorithm(collective, found.name), &found);
        }
      }
    }
  }
}

TEST(CollShmManifest, TheThresholdsDecide) {
  const auto name = [](Collective collective, std::uint64_t bytes, int ranks, bool tiers = false,
                       bool span_sockets = true, int rails = 0, bool wide_caches = false) {
    return std::string(
        coll_shm::algorithm_of(collective, bytes, {ranks, tiers, span_sockets, wide_caches, rails}).name);
  };
  EXPECT_EQ(name(Collective::barrier, 0, kTuning.barrier_flat_ranks), "flat");
  EXPECT_EQ(name(Collective::barrier, 0, kTuning.barrier_flat_ranks + 1), "dissemination");
  EXPECT_EQ(name(Collective::allreduce, kTuning.flat_reduce_bytes, 4), "flat");
  EXPECT_EQ(name(Collective::allreduce, kTuning.flat_reduce_bytes + 1, 4), "slices");
  EXPECT_EQ(name(Collective::reduce, kTuning.flat_reduce_bytes + 1, 2), "root");
  EXPECT_EQ(name(Collective::reduce, kTuning.flat_reduce_bytes + 1, 3), "slices");
  EXPECT_EQ(name(Collective::exscan, 8, 2), "chain");
  EXPECT_EQ(name(Collective::exscan, 8, 3), "flat");
  EXPECT_EQ(name(Collective::gatherv, 8, 3), "channels");
  EXPECT_EQ(name(Collective::barrier, 0, 17, true), "tiers");
  EXPECT_EQ(name(Collective::barrier, 0, kTuning.flat_ranks, true), "flat");
  EXPECT_EQ(name(Collective::bcast, kTuning.bcast_far_bytes, 17, true), "board");
  EXPECT_EQ(name(Collective::bcast, kTuning.bcast_far_bytes + 1, 17, true), "tiers");
  EXPECT_EQ(name(Collective::bcast, kTuning.bcast_far_bytes + 1, 17, true, false), "board");
  EXPECT_EQ(name(Collective::bcast, kTuning.bcast_long_bytes + 1, 17, true, false), "tiers");
  EXPECT_EQ(name(Collective::bcast, 8, kTuning.bcast_tiers.least_ranks, true), "tiers");
  EXPECT_EQ(name(Collective::bcast, 8, kTuning.bcast_tiers_wide.least_ranks, true), "board");
  EXPECT_EQ(name(Collective::bcast, 8, kTuning.bcast_tiers_wide.least_ranks, true, true, 8, true), "tiers");
  EXPECT_EQ(name(Collective::reduce_scatter_block, kTuning.tiers_reduce_bytes, 17, true), "tiers");
  EXPECT_EQ(name(Collective::reduce_scatter_block, 8, 17, true, true, 8), "rails");
  EXPECT_EQ(name(Collective::reduce_scatter_block, kTuning.rails_scatter_bytes, 16, true, true, 8), "slices");
  EXPECT_EQ(name(Collective::allreduce, kTuning.tiers_reduce_bytes + 1, 17, true), "slices");
  EXPECT_EQ(name(Collective::allreduce, kTuning.flat_bytes, 16, true, true, 8), "flat");
  EXPECT_EQ(name(Collective::allreduce, kTuning.rails_reduce_bytes, 17, true, true, 8), "tiers");
  EXPECT_EQ(name(Collective::allreduce, kTuning.rails_reduce_bytes + 1, 9, true, true, 4), "rails");
  EXPECT_EQ(name(Collective::reduce, kTuning.rails_reduce_bytes + 1, 128, true, true, 8), "rails");
}

TEST(CollShmManifest, PartsGoByRailsWhereTheyAreShortAndRanksMany) {
  const auto by_rails = [](Collective collective, std::uint64_t part, int ranks, bool wide_caches = false,
                           bool even_rails = true) {
    const coll_shm::TeamTraits members = {ranks, true, true, wide_caches, 8, even_rails};
    const std::uint64_t bytes = part * static_cast<unsigned>(ranks);
    return coll_shm::algorithm_of(collective, bytes, members).path == coll_shm::DataPath::rails;
  };
  const int gather = kTuning.rails_gather_ranks, each = kTuning.rails_alltoall_ranks;
  const auto& far = kTuning.rails_gather_long;
  EXPECT_TRUE(by_rails(Collective::allgather, kTuning.rails_gather_bytes, gather));
  EXPECT_FALSE(by_rails(Collective::allgather, kTuning.rails_gather_bytes, gather - 1));
  EXPECT_FALSE(by_rails(Collective::allgather, kTuning.rails_gather_bytes + 1, gather));
  EXPECT_TRUE(by_rails(Collective::allgather, far.from, gather));
  EXPECT_TRUE(by_rails(Collective::allgather, far.to, 128));
  EXPECT_FALSE(by_rails(Collective::allgather, far.to + 1, 128));
  EXPECT_FALSE(by_rails(Collective::allgather, far.to, 128, true));
  EXPECT_FALSE(by_rails(Collective::allgather, far.to, 128, false, false));
  EXPECT_TRUE(by_rails(Collective::allgather, far.to_uneven, 128, true));
  EXPECT_TRUE(by_rails(Collective::alltoall, kTuning.rails_alltoall_bytes, each));
  EXPECT_FALSE(by_rails(Collective::alltoall, kTuning.rails_alltoall_bytes + 1, each));
  EXPECT_FALSE(by_rails(Collective::alltoall, 8, each - 1));
}

TEST(CollShmManifest, PartsGoByTiersToARootWhereRanksAreMany) {
  const auto by_tiers = [](std::uint64_t part, int ranks) {
    const coll_shm::TeamTraits members = {ranks, true, true};
    return coll_shm::algorithm_of(Collective::gather, part * static_cast<unsigned>(ranks), members).path ==
           coll_shm::DataPath::tiers;
  };
  const Tuning::GatherTiers& by = kTuning.gather_tiers;
  for (const std::uint64_t part : {by.short_to, by.from, by.to}) {
    EXPECT_TRUE(by_tiers(part, by.least_ranks)) << part;
    EXPECT_FALSE(by_tiers(part, by.least_ranks - 1)) << part;
  }
  for (const std::uint64_t part : {by.short_to + 1, by.from - 1, by.to + 1})
    EXPECT_FALSE(by_tiers(part, by.least_ranks)) << part;
}

// A rank does not know the lengths of others' parts.
TEST(CollShmManifest, PartsOfSeveralLengthsGoByNoRails) {
  const coll_shm::TeamTraits members = {128, true, true, false, 8, true};
  for (const Collective c : {Collective::allgatherv, Collective::alltoallv, Collective::alltoallw}) {
    EXPECT_EQ(coll_shm::algorithm_of(c, 0, members).path, coll_shm::DataPath::whole);
    EXPECT_EQ(coll_shm::find_algorithm(c, "rails"), nullptr);
    EXPECT_EQ(std::string(coll_shm::expected(c)).find("rails"), std::string::npos);
  }
}

// With fewer processors than ranks.
TEST(CollShmManifest, ShortCallsOfManyCrowdedRanksGoByOneRank) {
  const auto name = [](Collective collective, std::uint64_t bytes, int ranks, bool tiers = false) {
    return std::string(coll_shm::algorithm_of(collective, bytes, {ranks, tiers, false, false, 0, false, true}).name);
  };
  const int few = kTuning.crowded_flat_ranks;
  for (const int ranks : {3, 5, 7, 8}) EXPECT_EQ(name(Collective::allreduce, 8, ranks), "flat") << ranks;
  EXPECT_EQ(name(Collective::barrier, 0, few), "flat");
  for (const int ranks : {few + 1, 16, 64, 1000}) {
    EXPECT_EQ(name(Collective::barrier, 0, ranks), "root");
    EXPECT_EQ(name(Collective::allreduce, kTuning.flat_reduce_bytes, ranks), "root");
    EXPECT_EQ(name(Collective::allreduce, kTuning.flat_reduce_bytes + 1, ranks), "slices");
    EXPECT_EQ(name(Collective::reduce, 8, ranks), "root");
    EXPECT_EQ(name(Collective::reduce_scatter, 8, ranks), "root");
    EXPECT_EQ(name(Collective::scan, 8, ranks), "chain");
    EXPECT_EQ(name(Collective::bcast, 1 << 20, ranks), "board");
  }
  EXPECT_EQ(name(Collective::reduce_scatter, kTuning.tiers_reduce_bytes, 17), "root");
  EXPECT_EQ(name(Collective::reduce_scatter, kTuning.tiers_reduce_bytes + 1, 17), "slices");
  EXPECT_EQ(name(Collective::allreduce, 8, 64, true), "tiers");  // asked for
  const auto owners = [](int ranks, bool crowded) {
    return coll_shm::slice_owners({ranks, false, false, false, 0, false, crowded});
  };
  EXPECT_EQ(owners(64, false), 64);
  EXPECT_EQ(owners(64, true), kTuning.crowded_owners);
  EXPECT_EQ(owners(5, true), 5);
}

TEST(CollShmManifest, EachAlgorithmHasAFileANameAndAPathOfItsOwn) {
  std::set<std::string> names;
  std::set<std::pair<Collective, coll_shm::DataPath>> paths;
  for (const coll_shm::Algorithm& algorithm : coll_shm::manifest()) {
    const std::string name =
        std::string(kCollectiveNames[static_cast<int>(algorithm.collective)]) + "/" + algorithm.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(paths.insert({algorithm.collective, algorithm.path}).second) << name;
    EXPECT_NE(std::string(coll_shm::expected(algorithm.collective)).find(std::string("shm:") + algorithm.name),
              std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(std::string(STRETTO_SOURCE_DIR "/src/coll/shm/") + algorithm.file)) << name;
  }
}

}  // namespace
