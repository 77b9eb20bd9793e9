// SPDX-License-Identifier: BSD-3-Clause
// Groups of fabricated placements.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "topo/hierarchy.hpp"

namespace stretto::test {
namespace {

using topo::Hierarchy;
using topo::LevelChoice;
using topo::Placement;
using Members = std::vector<int>;

struct Level {
  const char* name;
  std::vector<int> domains;  // by rank
};
Placement place(int ranks, const std::vector<Level>& levels) {
  Placement placement;
  placement.start(ranks);
  for (std::size_t l = 0; l < levels.size(); ++l) {
    EXPECT_TRUE(placement.add_level(levels[l].name));
    for (int r = 0; r < ranks; ++r) placement.at(static_cast<int>(l), r) = levels[l].domains[r];
  }
  return placement;
}
std::vector<int> every(int ranks, int each) {
  std::vector<int> domains(ranks);
  for (int r = 0; r < ranks; ++r) domains[r] = r / each;
  return domains;
}
Hierarchy make(const Placement& placement, const char* levels = "auto") {
  LevelChoice choice;
  topo::LevelError error;
  EXPECT_TRUE(topo::parse_levels(levels, &choice, &error)) << error.what;
  Hierarchy hierarchy;
  EXPECT_TRUE(hierarchy.build(placement, choice));
  return hierarchy;
}
Members members(const Hierarchy& h, int group, int root) {
  Members all;
  for (int i = 0; i < h.members(group); ++i) all.push_back(h.member(group, i, root));
  return all;
}
// The groups of which a rank is a member, lowest first.
std::vector<Members> groups_of(const Hierarchy& h, int rank, int root = 0) {
  std::vector<Members> all;
  for (int level = 0; level < h.levels() && h.is_member(rank, level, root); ++level)
    all.push_back(members(h, h.group_over(rank, level), root));
  return all;
}
Members range(int first, int last) {
  Members all(last - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

// 64 nodes of 2 sockets of 18 cores, with 16 nodes on a leaf switch. Processes are on nodes 1, 2
// and 48.
Placement kurnosov() {
  const int leaf_of_node[] = {0, 0, 2};
  std::vector<int> leaf;
  for (int r = 0; r < 108; ++r) leaf.push_back(leaf_of_node[r / 36]);
  return place(108, {{"socket", every(108, 18)}, {"node", every(108, 36)}, {"leaf", leaf}});
}

TEST(Hierarchy, GroupsOfThePublishedExample) {
  const Hierarchy h = make(kurnosov());
  EXPECT_EQ(groups_of(h, 0), (std::vector<Members>{range(0, 18), {0, 18}, {0, 36}, {0, 72}}));
  EXPECT_EQ(groups_of(h, 1), (std::vector<Members>{range(0, 18)}));
  EXPECT_EQ(groups_of(h, 36), (std::vector<Members>{range(36, 54), {36, 54}, {0, 36}}));
  EXPECT_EQ(groups_of(h, 72), (std::vector<Members>{range(72, 90), {72, 90}, {72}, {0, 72}}));
}

TEST(Hierarchy, TheRootLeadsEveryGroupItIsIn) {
  const Hierarchy h = make(kurnosov());
  EXPECT_EQ(groups_of(h, 60, 60), (std::vector<Members>{range(54, 72), {36, 60}, {0, 60}, {60, 72}}));
  EXPECT_EQ(groups_of(h, 36, 60), (std::vector<Members>{range(36, 54), {36, 60}}));
  EXPECT_EQ(groups_of(h, 54, 60), (std::vector<Members>{range(54, 72)}));
  EXPECT_EQ(groups_of(h, 0, 60), (std::vector<Members>{range(0, 18), {0, 18}, {0, 60}}));
}

TEST(Hierarchy, SplitsInHalvesWhereGroupsAreAlikeAndRanksAPowerOfTwo) {
  EXPECT_TRUE(make(place(8, {{"node", every(8, 2)}, {"leaf", every(8, 4)}})).splits_in_halves());
  EXPECT_TRUE(make(place(8, {{"node", {0, 1, 2, 3, 0, 1, 2, 3}}})).splits_in_halves());
  EXPECT_TRUE(make(place(8, {})).splits_in_halves());
  EXPECT_TRUE(make(place(1, {})).splits_in_halves());
  EXPECT_FALSE(make(place(12, {{"node", every(12, 2)}, {"leaf", every(12, 4)}})).splits_in_halves());
  EXPECT_FALSE(make(place(8, {{"node", every(8, 3)}})).splits_in_halves());
  EXPECT_FALSE(make(place(8, {{"node", every(8, 2)}, {"leaf", {0, 0, 0, 0, 0, 0, 1, 1}}})).splits_in_halves());
  EXPECT_FALSE(make(kurnosov()).splits_in_halves());
}

TEST(Hierarchies, WhetherNodesSplitInHalvesAndHangOnOneSwitch) {
  const auto of = [](const Placement& placement) {
    topo::Hierarchies hierarchies;
    EXPECT_TRUE(hierarchies.build(placement));
    return std::pair{hierarchies.one_switch(), hierarchies.nodes_split_in_halves()};
  };
  using Is = std::pair<bool, bool>;
  EXPECT_EQ(of(place(12, {{"node", every(12, 3)}})), (Is{true, true}));
  EXPECT_EQ(of(place(7, {{"node", {0, 0, 0, 1, 2, 3, 3}}})), (Is{true, true}));
  EXPECT_EQ(of(place(12, {{"node", every(12, 4)}})), (Is{true, false}));
  EXPECT_EQ(of(place(12, {{"socket", every(12, 1)}, {"node", every(12, 3)}, {"leaf", every(12, 6)}})),
            (Is{false, true}));
  EXPECT_EQ(of(place(4, {{"node", every(4, 1)}, {"leaf", every(4, 2)}})), (Is{false, true}));
  EXPECT_EQ(of(place(8, {{"node", every(8, 2)}, {"leaf", {0, 0, 0, 0, 0, 0, 1, 1}}})), (Is{false, false}));
  // Nodes 0 and 2 are below one switch, 1 and 3 below the other. The order of their leaders by rank
  // is not that of the line.
  EXPECT_EQ(of(place(12, {{"node", every(12, 3)}, {"leaf", {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}}})),
            (Is{false, false}));
  EXPECT_EQ(of(kurnosov()), (Is{false, false}));
}

TEST(Hierarchy, LevelsThatSplitNothingAreLeftOut) {
  const Placement p =
      place(8, {{"core", every(8, 1)}, {"l3", every(8, 2)}, {"numa", every(8, 2)}, {"node", every(8, 8)}});
  const Hierarchy h = make(p);
  ASSERT_EQ(h.levels(), 2);
  EXPECT_TRUE(h.name(0).is("l3"));
  EXPECT_EQ(groups_of(h, 0), (std::vector<Members>{{0, 1}, {0, 2, 4, 6}}));
  EXPECT_EQ(make(place(5, {})).levels(), 1);
  EXPECT_EQ(groups_of(make(place(5, {})), 3), (std::vector<Members>{range(0, 5)}));
  EXPECT_EQ(groups_of(make(place(1, {{"node", {0}}})), 0), (std::vector<Members>{{0}}));
}

TEST(Hierarchy, LevelsChosenByName) {
  const Placement p = kurnosov();
  EXPECT_EQ(groups_of(make(p, "node,leaf"), 36), (std::vector<Members>{range(36, 72), {0, 36}}));
  EXPECT_EQ(groups_of(make(p, "auto,-socket"), 36), (std::vector<Members>{range(36, 72), {0, 36}}));
  EXPECT_EQ(groups_of(make(p, "node"), 72), (std::vector<Members>{range(72, 108), {0, 36, 72}}));
  EXPECT_EQ(groups_of(make(p, "none"), 5), (std::vector<Members>{range(0, 108)}));
  EXPECT_EQ(groups_of(make(p, "l2"), 5), (std::vector<Members>{range(0, 108)}));
  EXPECT_EQ(groups_of(make(p, "node:3"), 36), (std::vector<Members>{range(36, 48), {36, 48, 60}, {0, 36, 72}}));
  EXPECT_EQ(groups_of(make(p, "socket,?5"), 0),
            (std::vector<Members>{range(0, 5), {0, 5, 9, 14}, {0, 18, 36, 54, 72, 90}}));
  EXPECT_EQ(groups_of(make(place(7, {}), "?3"), 3), (std::vector<Members>{{3, 4}, {0, 3, 5}}));
}

TEST(Hierarchy, DomainsNestWhateverTheirNumbers) {
  // NUMA nodes are numbered from 0 on each machine. Ranks go round-robin over two machines.
  const Placement p = place(8, {{"numa", {0, 0, 0, 0, 1, 1, 1, 1}}, {"node", {0, 1, 0, 1, 0, 1, 0, 1}}});
  const Hierarchy h = make(p);
  EXPECT_EQ(groups_of(h, 1), (std::vector<Members>{{1, 3}, {1, 5}, {0, 1}}));
  EXPECT_FALSE(h.keeps_rank_order());
  EXPECT_EQ((Members{h.order().begin(), h.order().end()}), (Members{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_TRUE(make(kurnosov()).keeps_rank_order());
}

TEST(Hierarchy, TheRankNearestToTheNetworkLeads) {
  Placement p = place(8, {{"socket", every(8, 2)}, {"node", every(8, 4)}});
  for (const std::uint32_t distance : {2, 1, 0, 0, 1, 1, 1, 0}) ASSERT_TRUE(p.nics.push({1, distance}));
  const Hierarchy h = make(p);
  EXPECT_EQ(groups_of(h, 2, 5), (std::vector<Members>{{2, 3}, {1, 2}, {2, 5}}));
  EXPECT_EQ(groups_of(h, 7, 0), (std::vector<Members>{{6, 7}, {4, 7}, {0, 7}}));
  EXPECT_TRUE(h.keeps_rank_order());
}

// Two sockets of four ranks on each of two nodes. `nics` goes by the rank within a node.
Hierarchy sockets_with(const std::vector<sys::NicPlace>& nics) {
  Placement p = place(16, {{"socket", every(16, 4)}, {"node", every(16, 8)}});
  for (int r = 0; r < 16; ++r) EXPECT_TRUE(p.nics.push(nics[static_cast<std::size_t>(r % 8)]));
  return make(p);
}
Members carriers(const Hierarchy& h, int level, int i) {
  Members all;
  const int group = h.group_on(level, i);
  for (int c = 0; c < h.carriers(group); ++c) all.push_back(h.carrier(group, c));
  return all;
}
constexpr sys::NicPlace kFirst{1, 0}, kSecond{2, 0}, kBoth{3, 0}, kFarFromBoth{3, 2};

TEST(Carriers, OneForEachCardTheNearestLowestRank) {
  const Hierarchy one_each = sockets_with({kFirst, kFirst, kFirst, kFirst, kSecond, kSecond, kSecond, kSecond});
  EXPECT_EQ(carriers(one_each, 1, 0), (Members{0, 4}));
  EXPECT_EQ(carriers(one_each, 1, 1), (Members{8, 12}));
  EXPECT_EQ(carriers(one_each, 0, 1), (Members{4}));  // of a socket: its own card
  // Both cards are on the second socket, so two of its ranks carry.
  const Hierarchy one_socket =
      sockets_with({kFarFromBoth, kFarFromBoth, kFarFromBoth, kFarFromBoth, kBoth, kBoth, kBoth, kBoth});
  EXPECT_EQ(carriers(one_socket, 1, 1), (Members{12, 13}));
  EXPECT_EQ(carriers(one_socket, 0, 0), (Members{0, 1}));
  EXPECT_EQ(groups_of(one_socket, 12, 0), (std::vector<Members>{range(12, 16), {8, 12}, {0, 12}}));
}

TEST(Carriers, WhereNoCardIsKnownTheLeader) {
  const Hierarchy none = make(place(16, {{"node", every(16, 8)}}));
  EXPECT_FALSE(none.knows_cards());
  EXPECT_EQ(carriers(none, 0, 1), (Members{8}));
  const Hierarchy unknown = sockets_with({{}, {}, kFirst, kFirst, {}, {}, {}, {}});
  EXPECT_EQ(carriers(unknown, 1, 0), (Members{2}));
  EXPECT_EQ(carriers(unknown, 0, 1), (Members{4}));
}

TEST(Carriers, AsManyAsThereAreRanks) {
  Placement p = place(4, {{"node", {0, 0, 0, 1}}});
  for (int r = 0; r < 4; ++r) ASSERT_TRUE(p.nics.push({0b10110, 0}));
  const Hierarchy h = make(p);
  EXPECT_EQ(carriers(h, 0, 0), (Members{0, 1, 2}));
  EXPECT_EQ(carriers(h, 0, 1), (Members{3}));
}

TEST(Carriers, ARankTakesThePlaceOfOneWithItsCard) {
  const Hierarchy h = sockets_with({kFirst, kFirst, kFirst, kFirst, kSecond, kSecond, kSecond, kSecond});
  const int node = h.group_on(1, 0);
  EXPECT_EQ(h.place_among_carriers(node, 4), 1);
  EXPECT_EQ(h.place_among_carriers(node, 7), 1);
  EXPECT_EQ(h.place_among_carriers(node, 3), 0);
}

TEST(Hierarchy, RanksInNoDomainStandAlone) {
  const Placement p = place(6, {{"socket", {0, -1, 0, 1, 1, -1}}, {"node", {0, 0, 0, 1, 1, 1}}});
  const Hierarchy h = make(p);
  EXPECT_EQ(groups_of(h, 0), (std::vector<Members>{{0, 2}, {0, 1}, {0, 3}}));
  EXPECT_EQ(groups_of(h, 1), (std::vector<Members>{{1}, {0, 1}}));
  EXPECT_EQ(groups_of(h, 3), (std::vector<Members>{{3, 4}, {3, 5}, {0, 3}}));
}

TEST(Hierarchy, EveryRankIsReachedOnceWhateverThePlacement) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    const int ranks = static_cast<int>(1 + random() % 200);
    const int levels = static_cast<int>(random() % 5);
    Placement p;
    p.start(ranks);
    const char* const names[] = {"l3", "numa", "socket", "node", "leaf"};
    for (int l = 0; l < levels; ++l) {
      ASSERT_TRUE(p.add_level(names[l]));
      const auto domains = 1 + random() % 9;
      for (int r = 0; r < ranks; ++r) p.at(l, r) = static_cast<std::int32_t>(random() % domains) - (random() % 10 == 0);
    }
    const Hierarchy h = make(p);
    const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    // Every rank but the root hears from exactly one leader, and chains of leaders end at the root.
    std::vector<int> above(ranks, -1);
    for (int level = 0; level < h.levels(); ++level) {
      std::set<int> seen;
      for (int i = 0; i < h.groups_on(level); ++i) {
        const int group = h.group_on(level, i);
        const int leader = h.leader(group, root);
        const Members m = members(h, group, root);
        EXPECT_EQ(std::count(m.begin(), m.end(), leader), 1);
        for (const int rank : m) {
          EXPECT_TRUE(seen.insert(rank).second);
          EXPECT_TRUE(h.is_member(rank, level, root));
          EXPECT_EQ(h.group_over(rank, level), group);
          if (rank == leader) continue;
          EXPECT_EQ(above[rank], -1);
          above[rank] = leader;
        }
      }
    }
    for (int r = 0; r < ranks; ++r) {
      int steps = 0;
      for (int at = r; at != root && steps <= h.levels(); at = above[at]) {
        ASSERT_GE(at, 0);
        ++steps;
      }
      EXPECT_LE(steps, h.levels());
    }
    // Ranks below a group are neighbours in the order of the tree.
    for (int level = 0; level < h.levels(); ++level) {
      for (int i = 0; i < h.groups_on(level); ++i) {
        const int group = h.group_on(level, i);
        for (int k = 0; k < h.under(group); ++k)
          EXPECT_EQ(h.group_over(h.order()[h.order_begin(group) + k], level), group);
      }
    }
  }
}

struct Spelling {
  const char* text;
  unsigned column;
};
TEST(Levels, MistakesAreTold) {
  const Spelling wrong[] = {{"", 1},           {"l3,,node", 4}, {"l3 node", 4}, {"numa:", 6},
                            {"numa:0", 6},     {"numa:x", 6},   {"?", 2},       {"-", 2},
                            {"-auto", 1},      {"-numa:2", 6},  {"none:2", 5},  {"a_name_that_is_too_long", 1},
                            {"NUMA", 1},       {"?9999999", 2}, {"l3x", 1},     {"node,bogus", 6},
                            {"auto,-nope", 7}, {"switch9", 1}};
  for (const Spelling& s : wrong) {
    LevelChoice choice;
    topo::LevelError error;
    EXPECT_FALSE(topo::parse_levels(s.text, &choice, &error)) << s.text;
    EXPECT_EQ(error.column, s.column) << s.text;
    EXPECT_NE(error.what, nullptr);
  }
}

TEST(Levels, Meaning) {
  LevelChoice choice;
  topo::LevelError error;
  ASSERT_TRUE(topo::parse_levels(" numa:2 , -leaf,?16", &choice, &error));
  int parts;
  EXPECT_TRUE(choice.active(topo::LevelName{"numa"}, &parts));
  EXPECT_EQ(parts, 2);
  EXPECT_FALSE(choice.active(topo::LevelName{"leaf"}, &parts));
  EXPECT_FALSE(choice.active(topo::LevelName{"socket"}, &parts));
  EXPECT_EQ(choice.at_most, 16);
  ASSERT_TRUE(topo::parse_levels("-leaf", &choice, &error));
  EXPECT_TRUE(choice.active(topo::LevelName{"socket"}, &parts));
}

}  // namespace
}  // namespace stretto::test
