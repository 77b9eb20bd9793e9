// SPDX-License-Identifier: BSD-3-Clause
// Tiers of fabricated placements: all ranks find the same groups, which hold all ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "topo/placement_file.hpp"
#include "topo/tiers.hpp"

namespace stretto::test {
namespace {

using topo::Binding;
using topo::Tier;
using topo::Tiers;
using Bindings = std::vector<Binding>;

std::vector<Tiers> tiers_of(int ranks, const Bindings& bindings, int most = Tier::kMostRanks) {
  std::vector<Tiers> all(ranks);
  for (int r = 0; r < ranks; ++r)
    EXPECT_TRUE(all[r].find(r, ranks, bindings.empty() ? nullptr : bindings.data(), most));
  return all;
}

std::vector<int> sizes(const Tiers& tiers) {
  std::vector<int> sizes;
  for (int i = 0; i < tiers.count(); ++i) sizes.push_back(tiers[i].size);
  return sizes;
}

// What must hold for any placement.
void judge(const std::vector<Tiers>& all, int most) {
  const int ranks = static_cast<int>(all.size());
  std::map<int, std::set<std::vector<int>>> groups;  // by level
  for (int r = 0; r < ranks; ++r) {
    const Tiers& mine = all[r];
    ASSERT_GE(mine.count(), 1);
    EXPECT_EQ(mine.height(), all[0].height());
    EXPECT_EQ(mine.keep_rank_order(), all[0].keep_rank_order());
    for (int i = 0; i < mine.count(); ++i) {
      const Tier& tier = mine[i];
      const std::vector<int> members(tier.members, tier.members + tier.size);
      EXPECT_LE(tier.size, tier.level == 0 ? most : 2 * most);
      EXPECT_EQ(members[tier.index], r);
      EXPECT_TRUE(std::is_sorted(members.begin(), members.end()));
      EXPECT_EQ(tier.index == 0, i + 1 < mine.count() || r == 0) << "a leader goes on, the others do not";
      EXPECT_EQ(tier.has_all, std::count(tier.over.begin(), tier.over.end(), Tier::kNobody) == 0);
      if (i > 0) EXPECT_GT(tier.level, mine[i - 1].level);
      groups[tier.level].insert(members);
      for (int q = 0; q < ranks; ++q) {
        const int over = tier.member_over(q);
        // A rank is below a member if it is that member, or below it in that member's lower tiers.
        bool below = over >= 0 && members[over] == q;
        for (int j = 0; over >= 0 && j < all[members[over]].count(); ++j) {
          const Tier& lower = all[members[over]][j];
          below = below || (lower.level < tier.level && lower.member_over(q) >= 0);
        }
        if (over >= 0) EXPECT_TRUE(below) << q;
      }
    }
    EXPECT_EQ(mine[mine.count() - 1].has_all, mine[mine.count() - 1].level == mine.height() - 1);
  }
  for (const auto& [level, found] : groups) {
    std::set<int> once;
    for (const auto& members : found) {
      for (const int member : members) EXPECT_TRUE(once.insert(member).second) << "in two groups of a level";
    }
  }
}

Bindings bound(int ranks, const std::function<Binding(int)>& where) {
  Bindings all;
  for (int r = 0; r < ranks; ++r) all.push_back(where(r));
  return all;
}
Binding at(int l3, int numa, int socket) { return {{l3, numa, socket}}; }

TEST(TiersTest, TwoSocketsOfEightCaches) {
  const auto all = tiers_of(128, bound(128, [](int r) { return at(r / 8 * 8, r / 64, r / 64 * 64); }));
  judge(all, 8);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 8, 2}));
  EXPECT_EQ(sizes(all[64]), (std::vector<int>{8, 8, 2}));
  EXPECT_EQ(sizes(all[8]), (std::vector<int>{8, 8}));
  EXPECT_EQ(sizes(all[9]), (std::vector<int>{8}));
  EXPECT_TRUE(all[0].keep_rank_order());
  EXPECT_TRUE(all[9].span_sockets());
  EXPECT_EQ(all[64][2].member_over(63), 0);
  EXPECT_EQ(all[8][1].member_over(64), -1);
  EXPECT_EQ(all[8][1].member_over(17), 2);
}

TEST(TiersTest, AWideCacheIsSplitAndJoinedBelowTheSocket) {
  const auto all = tiers_of(96, bound(96, [](int r) { return at(r / 48, r / 48, r / 48); }));
  judge(all, 8);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 6, 2}));
  EXPECT_EQ(sizes(all[48]), (std::vector<int>{8, 6, 2}));
}

TEST(TiersTest, LevelsThatJoinNothingAddNoTier) {
  // One rank on each cache, and one NUMA node and socket.
  const auto all = tiers_of(8, bound(8, [](int r) { return at(r, 0, 0); }));
  judge(all, 8);
  for (const Tiers& tiers : all) EXPECT_EQ(sizes(tiers), (std::vector<int>{8}));
}

TEST(TiersTest, RanksThatAreNotBoundMeetByRank) {
  const auto nowhere = tiers_of(40, bound(40, [](int) { return Binding{}; }));
  const auto unknown = tiers_of(40, {});
  judge(nowhere, 8);
  for (int r = 0; r < 40; ++r) EXPECT_EQ(sizes(nowhere[r]), sizes(unknown[r]));
  EXPECT_EQ(sizes(nowhere[0]), (std::vector<int>{8, 5}));
  EXPECT_EQ(sizes(nowhere[8]), (std::vector<int>{8, 5}));
  EXPECT_EQ(sizes(nowhere[39]), (std::vector<int>{8}));
}

TEST(TiersTest, ALoneRankOfADomainSkipsItsLevel) {
  // Rank 4 alone has the second cache.
  const auto all = tiers_of(5, bound(5, [](int r) { return at(r / 4, 0, 0); }));
  judge(all, 8);
  EXPECT_EQ(sizes(all[4]), (std::vector<int>{2}));
  EXPECT_EQ(all[4][0].level, 1);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{4, 2}));
}

TEST(TiersTest, DealtRanksAreOutOfOrder) {
  const auto all = tiers_of(32, bound(32, [](int r) { return at(r % 4, r % 2, r % 2); }));
  judge(all, 8);
  EXPECT_FALSE(all[0].keep_rank_order());
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 2, 2}));
  EXPECT_EQ(std::vector<int>(all[3][0].members, all[3][0].members + 8),
            (std::vector<int>{3, 7, 11, 15, 19, 23, 27, 31}));
}

TEST(TiersTest, APlacementFileNamesDomainsByTheirPaths) {
  topo::PlacementFile file;
  FileError error;
  const std::string text = "0-15: socket=0\n16-31: socket=1\n0-7,16-23: l3=0\n8-15,24-31: l3=1\n";
  ASSERT_TRUE(file.parse(text.data(), text.size(), &error));
  const auto all = tiers_of(32, bound(32, [&](int r) { return topo::binding_of(file.locality(r)); }));
  judge(all, 8);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 2, 2}));
  EXPECT_TRUE(all[0].keep_rank_order());
}

TEST(TiersTest, AnyPlacementIsCovered) {
  std::mt19937_64 random(7);
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 90), most = 2 + static_cast<int>(random() % 7);
    const int l3 = 1 + static_cast<int>(random() % 20), numa = 1 + static_cast<int>(random() % 6);
    const Bindings bindings = bound(ranks, [&](int) {
      const auto pick = [&](int domains) { return static_cast<int>(random() % (domains + 1)) - 1; };
      return at(pick(l3), pick(numa), pick(2));
    });
    std::vector<Tiers> all(ranks);
    int fine = 0;
    for (int r = 0; r < ranks; ++r) fine += all[r].find(r, ranks, bindings.data(), most) ? 1 : 0;
    EXPECT_TRUE(fine == 0 || fine == ranks) << "ranks must agree";
    if (fine != ranks) continue;
    ++found;
    judge(all, most);
  }
  EXPECT_GT(found, 100);
}

}  // namespace
}  // namespace stretto::test
