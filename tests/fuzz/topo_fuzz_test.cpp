// SPDX-License-Identifier: BSD-3-Clause
// Hostile network files and level strings. The reader never crashes, and every mistake has a place.
// STRETTO_TEST_SEED repeats a failure.
#include <gtest/gtest.h>

#include "fuzz/soup.hpp"
#include "topo/levels.hpp"
#include "topo/network.hpp"
#include "topo/placement_file.hpp"

namespace {

using namespace stretto;
using namespace stretto::test;
// Files that are mostly right. One change spoils some of them.
std::string almost(Random& random) {
  std::string text;
  const bool slurm = random() % 2 == 0;
  for (std::size_t i = random() % 6; i > 0; --i) {
    const std::string a = std::to_string(i);
    if (!slurm)
      text += "n" + a + "x[0" + std::to_string(random() % 9) + "-12] leaf" + a + " spine" +
              std::to_string(random() % 2) + "\n";
    else if (random() % 2 == 0)
      text += "SwitchName=s" + a + " Nodes=n" + a + "[1-" + std::to_string(1 + random() % 20) + "],m" + a + "\n";
    else
      text += "SwitchName=t" + a + " Switches=s[1-" + a + "]  # above\n";
  }
  if (!text.empty() && random() % 2 == 0) {
    const std::size_t at = random() % text.size();
    if (random() % 2 == 0)
      text.erase(at, 1 + random() % 3);
    else
      text.insert(at, 1, static_cast<char>(random()));
  }
  return text;
}

TEST(TopologyFuzz, NetworkFiles) {
  const std::vector<std::string> pieces = {
      "SwitchName=", "Nodes=", "Switches=", "BlockName=", "BlockSizes=", "LinkSpeed=", "node", "s",           "s0",
      "s1",          "[",      "]",         "[0-3]",      "[1-2,5]",     "-",          ",",    " ",           "\t",
      "\n",          "\r\n",   "#",         "=",          "0",           "1",          "4,8",  "99999999999", "."};
  Random random(seed());
  int accepted = 0;
  constexpr int kTexts = 60'000;
  topo::Network network;
  for (int i = 0; i < kTexts && !testing::Test::HasFailure(); ++i) {
    const std::string text = i % 2 == 0 ? almost(random) : soup(random, pieces, 25);
    SCOPED_TRACE("seed " + std::to_string(seed()) + ", text " + std::to_string(i) + ": " +
                 testing::PrintToString(text));
    FileError error;
    if (network.parse(text.data(), text.size(), &error)) {
      ++accepted;
      for (int n = 0; n < network.nodes(); ++n) {
        EXPECT_EQ(network.node(network.node_name(n)), n);
        for (int level = 0; level < network.levels(); ++level) EXPECT_GE(network.switch_over(n, level), 0);
      }
      continue;
    }
    expect_place(error, text, 1);
  }
  EXPECT_GT(accepted, kTexts / 10);
  EXPECT_LT(accepted, kTexts * 9 / 10);
}

TEST(TopologyFuzz, LevelStrings) {
  const std::vector<std::string> pieces = {"l3", "numa", "socket", "node", "leaf", "auto", "none", ",",
                                           ",",  ",",    ":",      "2",    "?",    "-",    " ",    "17"};
  Random random(seed() + 1);
  int accepted = 0;
  for (int i = 0; i < 60'000 && !testing::Test::HasFailure(); ++i) {
    const std::string text = soup(random, pieces, 12);
    SCOPED_TRACE("seed " + std::to_string(seed()) + ": " + testing::PrintToString(text));
    topo::LevelChoice choice;
    topo::LevelError error;
    if (topo::parse_levels(text.c_str(), &choice, &error)) {
      ++accepted;
      EXPECT_LE(choice.count, topo::kMostLevels);
      continue;
    }
    ASSERT_NE(error.what, nullptr);
    EXPECT_LE(error.column, text.size() + 1);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(TopologyFuzz, PlacementFiles) {
  const std::vector<std::string> pieces = {"all",
                                           ":",
                                           "node",
                                           "socket",
                                           "numa",
                                           "core",
                                           "leaf",
                                           "switch2",
                                           "=",
                                           "0",
                                           "1",
                                           "7",
                                           "0-3",
                                           "2-1",
                                           ",",
                                           " ",
                                           "\t",
                                           "\n",
                                           "\r\n",
                                           "#",
                                           "all: node:2 core:4\n",
                                           "0,2: node=1\n",
                                           "4294967296",
                                           "-",
                                           "l3",
                                           "nic",
                                           "0: nic=1 nic=31\n"};
  Random random(seed());
  int accepted = 0;
  constexpr int kTexts = 60'000;
  topo::PlacementFile file;
  for (int i = 0; i < kTexts && !testing::Test::HasFailure(); ++i) {
    const std::string text = soup(random, pieces, 14);
    SCOPED_TRACE("seed " + std::to_string(seed()) + ", text " + std::to_string(i) + ": " +
                 testing::PrintToString(text));
    const std::vector<char> exact(text.begin(), text.end());  // so that AddressSanitizer sees a read past the end
    FileError error;
    if (file.parse(exact.data(), exact.size(), &error)) {
      ++accepted;
      for (const int rank : {0, 1, 1000, 2147483647}) (void)file.locality(rank);
      continue;
    }
    expect_place(error, text);
  }
  EXPECT_GT(accepted, kTexts / 100);
  EXPECT_LT(accepted, kTexts);
}

}  // namespace
