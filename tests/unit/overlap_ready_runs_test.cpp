// SPDX-License-Identifier: BSD-3-Clause
// Parts of a buffer that go home together.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "overlap/ready_runs.hpp"

using stretto::overlap::ReadyRun;
using stretto::overlap::ReadyRuns;

namespace {

std::vector<ReadyRun> taken(ReadyRuns& runs) {
  std::vector<ReadyRun> all;
  for (ReadyRun run; runs.take(0, &run);) all.push_back(run);
  EXPECT_TRUE(runs.empty());
  std::sort(all.begin(), all.end(), [](const ReadyRun& a, const ReadyRun& b) { return a.offset < b.offset; });
  return all;
}

TEST(OverlapReadyRuns, NeighboursBecomeOne) {
  ReadyRuns runs;
  for (const ReadyRun part : {ReadyRun{8, 4}, {20, 4}, {4, 4}, {12, 4}}) EXPECT_TRUE(runs.add(part));
  EXPECT_EQ(taken(runs), (std::vector<ReadyRun>{{4, 12}, {20, 4}}));
  for (const ReadyRun part : {ReadyRun{4, 4}, {12, 4}, {8, 4}}) EXPECT_TRUE(runs.add(part));
  EXPECT_EQ(taken(runs), (std::vector<ReadyRun>{{4, 12}}));
}

TEST(OverlapReadyRuns, ShortOnesStayUntilTheyAreAsked) {
  ReadyRuns runs;
  for (const ReadyRun part : {ReadyRun{0, 4}, {8, 8}, {20, 12}}) EXPECT_TRUE(runs.add(part));
  ReadyRun run;
  EXPECT_TRUE(runs.take(8, &run) && runs.take(8, &run));
  EXPECT_FALSE(runs.take(8, &run));
  EXPECT_EQ(taken(runs), (std::vector<ReadyRun>{{0, 4}}));
}

TEST(OverlapReadyRuns, WhatHasNoRoomIsRefusedAndNeighboursAreNot) {
  ReadyRuns runs;
  for (std::uint64_t i = 0; i < ReadyRuns::kMost; ++i) EXPECT_TRUE(runs.add({8 * i, 4}));
  EXPECT_FALSE(runs.add({8 * ReadyRuns::kMost, 4}));
  EXPECT_TRUE(runs.add({4, 4}));
  EXPECT_TRUE(runs.add({8 * ReadyRuns::kMost, 4}));
  EXPECT_EQ(taken(runs).size(), ReadyRuns::kMost);
}

TEST(OverlapReadyRuns, PartsInAnyOrderAreOneRunInTheEnd) {
  std::mt19937 random(7);
  std::vector<std::uint64_t> order(ReadyRuns::kMost);
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    ReadyRuns runs;
    for (const std::uint64_t i : order) ASSERT_TRUE(runs.add({i * 3, 3}));
    EXPECT_EQ(taken(runs), (std::vector<ReadyRun>{{0, 3 * ReadyRuns::kMost}}));
  }
}

}  // namespace
