// SPDX-License-Identifier: BSD-3-Clause
// Groups of fabricated placements: all ranks find the same ones, which hold all ranks, as tiers and
// as rails.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "topo/groups.hpp"
#include "topo/placement_file.hpp"

namespace stretto::test {
namespace {

using topo::Binding;
using topo::Group;
using topo::Groups;
using Bindings = std::vector<Binding>;

std::vector<Groups> groups_of(int ranks, const Bindings& bindings, const topo::Plan& plan = topo::kShortPlan) {
  std::vector<Groups> all(static_cast<std::size_t>(ranks));
  int found = 0;
  for (int r = 0; r < ranks; ++r)
    found += all[static_cast<std::size_t>(r)].find(r, ranks, bindings.empty() ? nullptr : bindings.data(), plan);
  EXPECT_TRUE(found == 0 || found == ranks) << "ranks must agree";
  if (found == 0) all.clear();
  return all;
}
std::vector<Groups> rails_of(int ranks, const Bindings& bindings, int most = 8) {
  return groups_of(ranks, bindings, topo::kRailsPlan.at_most(most));
}

std::vector<int> sizes(const Groups& groups) {
  std::vector<int> sizes;
  for (int i = 0; i < groups.count(); ++i) sizes.push_back(groups[i].size());
  return sizes;
}
std::vector<int> members(const Group& group) { return {group.members.begin(), group.members.end()}; }

// What must hold for any placement and plan.
void judge(const std::vector<Groups>& all, const topo::Plan& plan) {
  const int ranks = static_cast<int>(all.size());
  std::map<int, std::set<std::vector<int>>> groups;  // by level
  for (int r = 0; r < ranks; ++r) {
    const Groups& mine = all[r];
    ASSERT_GE(mine.count(), 1);
    EXPECT_EQ(mine.height(), all[0].height());
    EXPECT_EQ(mine.keep_rank_order(), all[0].keep_rank_order());
    EXPECT_TRUE(mine.has_all(mine[mine.tiers() - 1]) || mine[mine.tiers() - 1].index != 0);
    for (int i = 0; i < mine.count(); ++i) {
      const Group& group = mine[i];
      EXPECT_GE(group.size(), 2);
      if (i == 0 && group.level == 0) EXPECT_LE(group.size(), plan.most_ranks);
      if (i > 0 && !plan.rails) EXPECT_LE(group.size(), 2 * plan.most_ranks);
      EXPECT_EQ(group.members[group.index], r);
      if (i > 0) EXPECT_GT(group.level, mine[i - 1].level);
      groups[group.level].insert(members(group));
      for (int q = 0; q < ranks; ++q) {
        const int over = mine.member_over(group, q);
        if (over < 0) continue;
        // The member that stands for q is in one group with it on the level below.
        const int member = group.members[over];
        if (group.level == 0) EXPECT_EQ(member, q);
        for (int l = 0; l < group.level; ++l) {
          const Group* const lower = all[member].count() > l && all[member][l].level == l ? &all[member][l] : nullptr;
          if (l + 1 == group.level && lower != nullptr) EXPECT_GE(all[member].member_over(*lower, q), 0);
        }
      }
    }
  }
  for (const auto& [level, found] : groups) {
    std::set<int> once;
    for (const auto& group : found) {
      for (const int member : group) EXPECT_TRUE(once.insert(member).second) << "in two groups of a level";
    }
  }
}

// The slices of each level together serve all ranks, and each rank is served by one.
void judge_rails(const std::vector<Groups>& all) {
  const int ranks = static_cast<int>(all.size());
  std::vector<int> served(all.size(), 0);
  for (int r = 0; r < ranks; ++r) {
    const Groups& mine = all[r];
    for (int i = 0; i < mine.count(); ++i) {
      const Group& group = mine[i];
      const int slices = mine.has_all(group) ? group.size() : mine.slices(group.level);
      EXPECT_EQ(group.level, i);
      EXPECT_EQ(static_cast<int>(group.cuts.size()), slices + 1);
      EXPECT_EQ(group.index < slices, i + 1 < mine.count() || mine.has_all(group));
      EXPECT_TRUE(std::is_sorted(group.cuts.begin(), group.cuts.end()));
      for (const int other : group.members) {
        EXPECT_TRUE(std::equal(group.cuts.begin(), group.cuts.end(), all[other][i].cuts.begin()));
      }
    }
    for (int i = mine.served_from(); i < mine.served_to(); ++i) {
      const int other = mine.order()[i];
      ++served[other];
      EXPECT_EQ(all[other].server(), r);
    }
  }
  for (const int times : served) EXPECT_EQ(times, 1);
  const bool alone = std::all_of(all.begin(), all.end(),
                                 [](const Groups& mine) { return mine.served_to() == mine.served_from() + 1; });
  for (const Groups& mine : all) EXPECT_EQ(mine.all_on_rails(), alone);
}

// What the members of a group stand for are neighbours in the order of places, in their order. In
// the end one group stands for all.
void judge_places(const std::vector<Groups>& all) {
  for (const Groups& mine : all) {
    EXPECT_TRUE(std::equal(mine.places().begin(), mine.places().end(), all[0].places().begin()));
    std::set<int> ranks(mine.places().begin(), mine.places().end());
    EXPECT_EQ(ranks.size(), all.size());
    for (int i = 0; i < mine.count(); ++i) {
      const Group& group = mine[i];
      ASSERT_EQ(std::ssize(group.origins), group.size() + 1);
      const auto begin = std::find_if(mine.places().begin(), mine.places().end(),
                                      [&](int rank) { return mine.member_over(group, rank) == 0; });
      for (int m = 0; m < group.size(); ++m) {
        for (int at = group.origins[m]; at < group.origins[m + 1]; ++at)
          EXPECT_EQ(mine.member_over(group, begin[at]), m);
      }
      if (mine.has_all(group)) EXPECT_EQ(group.origins[group.origins.size() - 1], std::ssize(all));
    }
  }
}

Bindings bound(int ranks, const std::function<Binding(int)>& where) {
  Bindings all;
  for (int r = 0; r < ranks; ++r) all.push_back(where(r));
  return all;
}
Binding at(int l3, int numa, int socket) { return {{l3, numa, socket}}; }

TEST(Groups, AreTheLowestAndAllWhereOneGroupJoinsThem) {
  const auto all = groups_of(128, bound(128, [](int r) { return at(r / 8 * 8, r / 64, r / 64 * 64); }));
  judge(all, topo::kShortPlan);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 16}));
  EXPECT_EQ(sizes(all[64]), (std::vector<int>{8, 16}));
  EXPECT_EQ(sizes(all[9]), (std::vector<int>{8}));
  EXPECT_TRUE(all[0].keep_rank_order());
  EXPECT_TRUE(all[9].span_sockets());
  EXPECT_EQ(all[64].member_over(all[64][1], 63), 7);
  EXPECT_EQ(all[8].member_over(all[8][0], 17), -1);
}

TEST(Groups, OfManyCachesAreBySocket) {
  const auto all = groups_of(192, bound(192, [](int r) { return at(r / 8, r / 24, r / 96); }));
  judge(all, topo::kShortPlan);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 12, 2}));
  EXPECT_EQ(sizes(all[96]), (std::vector<int>{8, 12, 2}));
}

TEST(Groups, OfRailsAreByCacheSocketAndNode) {
  const Bindings bindings = bound(128, [](int r) { return at(r / 8, r / 16, r / 64); });
  const auto all = rails_of(128, bindings);
  judge(all, topo::kRailsPlan);
  judge_rails(all);
  judge_places(all);
  for (const Groups& mine : all) EXPECT_EQ(sizes(mine), (std::vector<int>{8, 8, 2}));
  EXPECT_EQ(members(all[9][1]), (std::vector<int>{1, 9, 17, 25, 33, 41, 49, 57}));
  EXPECT_EQ(members(all[9][2]), (std::vector<int>{9, 73}));
  EXPECT_EQ(all[9].tiers(), 1);
  EXPECT_EQ(all[8].tiers(), 2);
  EXPECT_EQ(all[0].tiers(), 3);
}

TEST(Groups, OfAWideCacheAreParts) {
  const Bindings bindings = bound(96, [](int r) { return at(r / 48, r / 48, r / 48); });
  const auto all = rails_of(96, bindings);
  judge(all, topo::kRailsPlan);
  judge_rails(all);
  judge_places(all);
  EXPECT_EQ(sizes(all[95]), (std::vector<int>{8, 6, 2}));
  EXPECT_EQ(sizes(groups_of(96, bindings)[0]), (std::vector<int>{8, 12}));
}

TEST(Groups, OfUnevenRailsAreByRank) {
  // One rank alone has the fifth cache.
  const auto all = rails_of(33, bound(33, [](int r) { return at(r / 8, 0, 0); }));
  judge(all, topo::kRailsPlan);
  judge_rails(all);
  judge_places(all);
  EXPECT_EQ(all[0].slices(0), 6);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{6, 5}));
}

TEST(Groups, LevelsThatJoinNothingAreLeftOut) {
  // One rank on each cache, and one NUMA node and socket.
  const auto all = groups_of(8, bound(8, [](int r) { return at(r, 0, 0); }));
  judge(all, topo::kShortPlan);
  for (const Groups& groups : all) EXPECT_EQ(sizes(groups), (std::vector<int>{8}));
}

TEST(Groups, OfRanksThatAreNotBoundAreByRank) {
  const auto nowhere = groups_of(40, bound(40, [](int) { return Binding{}; }));
  const auto unknown = groups_of(40, {});
  judge(nowhere, topo::kShortPlan);
  for (int r = 0; r < 40; ++r) EXPECT_EQ(sizes(nowhere[r]), sizes(unknown[r]));
  EXPECT_EQ(sizes(nowhere[0]), (std::vector<int>{8, 5}));
  EXPECT_EQ(sizes(nowhere[8]), (std::vector<int>{8, 5}));
  EXPECT_EQ(sizes(nowhere[39]), (std::vector<int>{8}));
}

TEST(Groups, ALoneRankOfADomainSkipsItsLevel) {
  // Rank 4 alone has the second cache.
  const auto all = groups_of(5, bound(5, [](int r) { return at(r / 4, 0, 0); }));
  judge(all, topo::kShortPlan);
  EXPECT_EQ(sizes(all[4]), (std::vector<int>{2}));
  EXPECT_EQ(all[4][0].level, 1);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{4, 2}));
}

TEST(Groups, OfDealtRanksAreByPlace) {
  const Bindings bindings = bound(32, [](int r) { return at(r % 4, r % 2, r % 2); });
  const auto all = groups_of(32, bindings);
  judge(all, topo::kShortPlan);
  EXPECT_FALSE(all[0].keep_rank_order());
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 4}));
  EXPECT_EQ(members(all[3][0]), (std::vector<int>{3, 7, 11, 15, 19, 23, 27, 31}));
  judge_rails(rails_of(32, bindings));
  judge_places(rails_of(32, bindings));
}

TEST(Groups, APlacementFileNamesDomainsByTheirPaths) {
  topo::PlacementFile file;
  FileError error;
  const std::string text = "0-15: socket=0\n16-31: socket=1\n0-7,16-23: l3=0\n8-15,24-31: l3=1\n";
  ASSERT_TRUE(file.parse(text.data(), text.size(), &error));
  const auto all = rails_of(32, bound(32, [&](int r) { return topo::binding_of(file.locality(r)); }));
  judge(all, topo::kRailsPlan);
  EXPECT_EQ(sizes(all[0]), (std::vector<int>{8, 2, 2}));
  EXPECT_TRUE(all[0].keep_rank_order());
}

TEST(Groups, OfAnyPlacementHoldAllRanks) {
  std::mt19937_64 random(7);
  int found = 0;
  for (int i = 0; i < 600; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 90), most = 2 + static_cast<int>(random() % 7);
    const int l3 = 1 + static_cast<int>(random() % 20), numa = 1 + static_cast<int>(random() % 6);
    const Bindings bindings = bound(ranks, [&](int) {
      const auto pick = [&](int domains) { return static_cast<int>(random() % (domains + 1)) - 1; };
      return at(pick(l3), pick(numa), pick(2));
    });
    const topo::Plan plan{static_cast<unsigned>(random() % 8), i % 2 == 1, i % 3 == 1, most};
    const auto all = groups_of(ranks, bindings, plan);
    if (all.empty()) continue;
    ++found;
    judge(all, plan);
    if (plan.rails && all[0].slices(0) > 1) judge_rails(all);
  }
  EXPECT_GT(found, 300);
}

}  // namespace
}  // namespace stretto::test
