// SPDX-License-Identifier: BSD-3-Clause
// The manifest of algorithms over shared memory: every collective has one for each call, and each
// names its file.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include "base/tuning.hpp"
#include "coll/shm/manifest.hpp"

namespace {

using namespace stretto;

TEST(CollShmManifest, EveryCallHasAnAlgorithm) {
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int ranks : {2, 3, 64, 1000}) {
      for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
        for (const bool tiers : {false, true}) {
          const coll_shm::TeamTraits members = {ranks, tiers, tiers};
          const coll_shm::Algorithm& found = coll_shm::algorithm_of(collective, bytes, members);
          EXPECT_TRUE(found.serves(bytes, members));
          EXPECT_EQ(coll_shm::find_algorithm(collective, found.name), &found);
        }
      }
    }
  }
}

TEST(CollShmManifest, TheThresholdsDecide) {
  const auto name = [](Collective collective, std::uint64_t bytes, int ranks, bool tiers = false,
                       bool span_sockets = true, int socket_ranks = 0) {
    return std::string(coll_shm::algorithm_of(collective, bytes, {ranks, tiers, span_sockets, socket_ranks}).name);
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
  EXPECT_EQ(name(Collective::bcast, kTuning.tiers_bcast_bytes, 17, true), "board");
  EXPECT_EQ(name(Collective::bcast, kTuning.tiers_bcast_bytes + 1, 17, true), "tiers");
  EXPECT_EQ(name(Collective::bcast, kTuning.tiers_bcast_bytes + 1, 17, true, false), "board");
  EXPECT_EQ(name(Collective::reduce_scatter_block, kTuning.tiers_reduce_bytes, 17, true), "tiers");
  EXPECT_EQ(name(Collective::allreduce, kTuning.tiers_reduce_bytes + 1, 17, true), "slices");
  EXPECT_EQ(name(Collective::allreduce, 16 * kTuning.sockets_slice_bytes, 32, true, true, 16), "tiers");
  EXPECT_EQ(name(Collective::allreduce, 16 * kTuning.sockets_slice_bytes + 1, 32, true, true, 16), "sockets");
  EXPECT_EQ(name(Collective::allreduce, kTuning.flat_reduce_bytes, 17, true, true, 2), "tiers");
  EXPECT_EQ(name(Collective::allreduce, kTuning.tiers_reduce_bytes, 256, true, true, 128), "tiers");
  EXPECT_EQ(name(Collective::allreduce, kTuning.tiers_reduce_bytes + 1, 256, true, true, 128), "sockets");
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
