// SPDX-License-Identifier: BSD-3-Clause
// Localities from files and machines, and the placements that follow from them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topo/hierarchy.hpp"
#include "topo/placement_file.hpp"
#include "unit/mistakes.hpp"
#include "unit/sys_support.hpp"

namespace stretto::test {
namespace {

using topo::Locality;
using topo::Placement;
using topo::PlacementFile;

PlacementFile parsed(const std::string& text) {
  PlacementFile file;
  FileError error;
  EXPECT_TRUE(file.parse(text.data(), text.size(), &error)) << said(error);
  return file;
}

Placement placed(const std::vector<Locality>& localities, const std::vector<int>& members = {}) {
  const topo::Localities all{
      const_cast<std::vector<Locality>*>(&localities),
      [](void* s, int r, int level) {
        return (*static_cast<std::vector<Locality>*>(s))[static_cast<std::size_t>(r)].domains[level];
      },
      [](void* s, int r) { return (*static_cast<std::vector<Locality>*>(s))[static_cast<std::size_t>(r)].nics; }};
  Placement placement;
  EXPECT_TRUE(topo::place(&placement, all, topo::known_of(static_cast<int>(localities.size()), all),
                          members.empty() ? nullptr : members.data(),
                          static_cast<int>(members.empty() ? localities.size() : members.size())));
  return placement;
}
Placement placed(const PlacementFile& file, int ranks, const std::vector<int>& members = {}) {
  std::vector<Locality> localities;
  for (int r = 0; r < ranks; ++r) localities.push_back(file.locality(r));
  return placed(localities, members);
}
std::vector<int> sizes_on(const topo::Hierarchy& h, int level) {
  std::vector<int> sizes;
  for (int i = 0; i < h.groups_on(level); ++i) sizes.push_back(h.under(h.group_on(level, i)));
  return sizes;
}

TEST(PlacementFileTest, DealsRanksToAShape) {
  const PlacementFile file = parsed("# sixteen cores\nall: socket:2 numa:2 core:4\n");
  topo::Hierarchy h;
  ASSERT_TRUE(h.build(placed(file, 16)));
  ASSERT_EQ(h.levels(), 3);  // a core with one rank is no group
  EXPECT_STREQ(h.name(0).text, "numa");
  EXPECT_STREQ(h.name(1).text, "socket");
  EXPECT_EQ(sizes_on(h, 0), (std::vector<int>{4, 4, 4, 4}));
  EXPECT_EQ(sizes_on(h, 1), (std::vector<int>{8, 8}));
  EXPECT_EQ(h.group_over(5, 0), h.group_over(7, 0));
  EXPECT_NE(h.group_over(7, 0), h.group_over(8, 0));
}

TEST(PlacementFileTest, PlacesRanksOnAllLevelsThatAreNamed) {
  topo::Placement placement;
  ASSERT_TRUE(parsed("all: leaf:1\n0,2: node=7\n1: node=8\n").place(4, &placement));
  ASSERT_EQ(placement.levels, 2);
  EXPECT_TRUE(placement.names[0].is("node") && placement.names[1].is("leaf"));
  EXPECT_EQ(placement.at(0, 0), placement.at(0, 2));
  EXPECT_NE(placement.at(0, 0), placement.at(0, 1));
  EXPECT_EQ(placement.at(0, 3), topo::Placement::kNowhere);
  for (int r = 1; r < 4; ++r) EXPECT_EQ(placement.at(1, r), placement.at(1, 0));
}

TEST(PlacementFileTest, StartsAgainBehindTheLastCore) {
  const PlacementFile file = parsed("all: node:2 core:2");
  EXPECT_EQ(file.locality(0).domains[topo::kNodeLevel], file.locality(4).domains[topo::kNodeLevel]);
  EXPECT_EQ(file.locality(0).domains[0], file.locality(4).domains[0]);
  EXPECT_NE(file.locality(0).domains[topo::kNodeLevel], file.locality(2).domains[topo::kNodeLevel]);
}

TEST(PlacementFileTest, LaterLinesCount) {
  const PlacementFile file = parsed("all: node:2 core:2\n1, 3-4:\tnode=7 numa=1  # elsewhere\r\n");
  EXPECT_EQ(file.locality(1).domains[topo::kNodeLevel], 8u);
  EXPECT_EQ(file.locality(3).domains[topo::kNodeLevel], 8u);
  EXPECT_EQ(file.locality(3).domains[topo::locality_level("numa", 4)], 2u);
  EXPECT_EQ(file.locality(2).domains[topo::kNodeLevel], 2u);
  EXPECT_EQ(file.locality(2).domains[topo::locality_level("numa", 4)], 0u);
}

TEST(PlacementFileTest, SaysWhichCardsAreNear) {
  const PlacementFile file = parsed("all: node:2 core:4\n0-3: nic=0\n2: nic=0 nic=3\n3: nic=31 node=0\n");
  Placement whole;
  ASSERT_TRUE(file.place(8, &whole));
  const Placement dealt = placed(file, 8);
  const std::uint32_t nearest[] = {1, 1, 0b1001, 1u << 31, 0, 0, 0, 0};
  for (const Placement* p : {static_cast<const Placement*>(&whole), &dealt}) {
    ASSERT_EQ(p->nics.size(), 8u);
    for (std::size_t r = 0; r < 8; ++r) {
      EXPECT_EQ(p->nics[r].nearest, nearest[r]) << r;
      EXPECT_EQ(p->nics[r].distance, r < 4 ? 0u : 3u) << r;
    }
  }
  EXPECT_TRUE(placed(parsed("all: node:2 core:4"), 8).nics.empty());
}

TEST(PlacementFileTest, NamesEveryMistakeAndItsPlace) {
  expect_mistakes<PlacementFile>({
      {"0-3 node=1", "1:5 ':' was expected"},
      {"\n 0-3: nod=1", "2:7 a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...; or nic"},
      {"0: nic=32", "1:8 the number is too large"},
      {"0: nics=1", "1:4 a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...; or nic"},
      {"all: node:2 nic:2", "1:13 a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ..."},
      {"3-1: node=1", "1:4 the range ends before it begins"},
      {"0: node", "1:8 '=' was expected"},
      {"0: node=x", "1:9 a number was expected"},
      {"0:", "1:3 the ranks are in no domain"},
      {"all: core:2 node:2", "1:13 levels go from the outermost in"},
      {"all: node:0", "1:12 a number from 1 was expected"},
      {"all: node:100000 core:100000", "1:29 these are too many domains"},
      {"99999999999: node=1", "1:1 the number is too large"},
      {"x", "1:1 a number was expected"},
  });
}

TEST(Localities, MembersKeepTheirPlaces) {
  const Placement members = placed(parsed("all: node:4 core:2\n1,6: nic=1"), 8, {7, 0, 1, 6});
  topo::Hierarchy h;
  ASSERT_TRUE(h.build(members));
  ASSERT_EQ(h.levels(), 2);
  EXPECT_EQ(h.group_over(0, 0), h.group_over(3, 0));
  EXPECT_EQ(h.group_over(1, 0), h.group_over(2, 0));
  EXPECT_FALSE(h.keeps_rank_order());
  EXPECT_EQ(h.leader(h.group_over(0, 0)), 3);  // rank 6 of the job, which is near the card
  EXPECT_EQ(h.leader(h.group_over(1, 0)), 2);
}

TEST(Localities, OfMachinesAndSwitches) {
  topo::Network network;
  FileError error;
  const std::string text = "a leaf1 spine\nb leaf1 spine\nc leaf2 spine\n";
  ASSERT_TRUE(network.parse(text.data(), text.size(), &error));
  sys::CpuPlace bound;
  bound.in(sys::CpuDomain::package) = 0;
  sys::CpuPlace other = bound;
  other.in(sys::CpuDomain::package) = 18;
  const Placement placement =
      placed({topo::find_locality(bound, 11, "a", &network), topo::find_locality(other, 11, "a.site.org", &network),
              topo::find_locality(bound, 12, "b", &network), topo::find_locality(bound, 13, "c", &network),
              topo::find_locality(sys::CpuPlace{}, 14, "unknown", &network),
              topo::find_locality(sys::CpuPlace{}, 14, "unknown", &network)});
  topo::Hierarchy h;
  ASSERT_TRUE(h.build(placement));
  std::vector<std::string> names;
  for (int level = 0; level < h.levels(); ++level) names.push_back(h.name(level).text);
  // Every switch above the leaves splits in the same way: known nodes from the unknown one.
  EXPECT_EQ(names, (std::vector<std::string>{"node", "leaf", "switch2", "top"}));
  EXPECT_EQ(sizes_on(h, 0), (std::vector<int>{2, 1, 1, 2}));
  EXPECT_EQ(sizes_on(h, 1), (std::vector<int>{3, 1, 2}));
  EXPECT_EQ(sizes_on(h, 2), (std::vector<int>{4, 2}));
}

TEST(Localities, OneNodeHasNoLevels) {
  const Placement placement =
      placed({topo::find_locality({}, 5, "a", nullptr), topo::find_locality({}, 5, "a", nullptr)});
  EXPECT_EQ(placement.levels, 0);
}

// Two packages of two cores with two threads each. Each package has one NUMA node and one L3, each
// core an L2.
class Machine {
 public:
  Machine() {
    const std::string cores[] = {"0,4", "1,5", "2,6", "3,7"}, packages[] = {"0-1,4-5", "2-3,6-7"};
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string base = "cpu/cpu" + std::to_string(cpu) + "/";
      const std::string& package = packages[cpu % 4 / 2];
      put(base + "topology/core_cpus_list", cores[cpu % 4]);
      put(base + "topology/package_cpus_list", package);
      put(base + "cache/index0/level", "1");
      put(base + "cache/index1/level", "2");
      put(base + "cache/index1/shared_cpu_list", cores[cpu % 4]);
      put(base + "cache/index2/level", "3");
      put(base + "cache/index2/shared_cpu_list", package);
      put(base + "cache/index2/size", cpu % 4 / 2 == 0 ? "32768K" : "16384K");
    }
    put("node/online", "0-1");
    put("node/node0/cpulist", packages[0]);
    put("node/node1/cpulist", packages[1]);
  }

  [[nodiscard]] std::vector<int> place(std::uint64_t mask) const {
    const sys::CpuPlace place = sys::cpu_place(root_.path(), &mask, 1);
    return {std::begin(place.domains), std::end(place.domains)};
  }
  [[nodiscard]] sys::SharedCache l3(std::uint64_t mask) const { return sys::l3_cache(root_.path(), &mask, 1); }

 private:
  void put(const std::string& name, const std::string& text) const { root_.put("sys/devices/system/" + name, text); }
  PretendedRoot root_{"cpus"};
};

TEST(CpuPlaceTest, SitsInTheDomainsThatHoldTheWholeBinding) {
  const Machine machine;  // core, l2, l3, numa, package
  EXPECT_EQ(machine.place(0b0000'0010), (std::vector<int>{1, 1, 0, 0, 0}));
  EXPECT_EQ(machine.place(0b1000'1000), (std::vector<int>{3, 3, 2, 1, 2}));
  EXPECT_EQ(machine.place(0b0011'0011), (std::vector<int>{-1, -1, 0, 0, 0}));
  EXPECT_EQ(machine.place(0b0110'0110), (std::vector<int>{-1, -1, -1, -1, -1}));
  EXPECT_EQ(machine.place(0b1111'1111), (std::vector<int>{-1, -1, -1, -1, -1}));
  EXPECT_EQ(machine.place(0), (std::vector<int>{-1, -1, -1, -1, -1}));
}

TEST(CpuPlaceTest, KnowsNothingWhereTheSystemSaysNothing) {
  const std::uint64_t mask = 1;
  for (const int domain : sys::cpu_place("/nowhere", &mask, 1).domains) EXPECT_EQ(domain, -1);
  EXPECT_EQ(sys::l3_cache("/nowhere", &mask, 1).bytes, 0u);
}

TEST(L3Test, IsThatOfTheFirstProcessor) {
  const Machine machine;
  EXPECT_EQ(machine.l3(0b0000'0010).bytes, 32u << 20);
  EXPECT_EQ(machine.l3(0b1000'1000).bytes, 16u << 20);
  EXPECT_EQ(machine.l3(0b1000'1000).processors, 4);
  EXPECT_EQ(machine.l3(0).bytes, 0u);
}

// The cards of a machine with processors 0-3 on one socket and 4-7 on another.
class Cards {
 public:
  void add_interface(const std::string& name, const std::string& state, const std::string& speed,
                     const std::string& cpus) const {
    put("net/" + name + "/operstate", state);
    if (!speed.empty()) put("net/" + name + "/speed", speed);
    if (!cpus.empty()) put("net/" + name + "/device/local_cpulist", cpus);
  }
  void add_infiniband(const std::string& name, const std::string& port, const std::string& state,
                      const std::string& cpus) const {
    put("infiniband/" + name + "/ports/" + port + "/state", state);
    put("infiniband/" + name + "/ports/" + port + "/rate", "100 Gb/sec (4X EDR)");
    put("infiniband/" + name + "/device/local_cpulist", cpus);
  }
  // The nearest cards, and how far they are.
  [[nodiscard]] std::pair<unsigned, unsigned> near(std::uint64_t mask) const {
    const sys::NicPlace place = sys::nic_place(root_.path(), &mask, 1);
    return {place.nearest, place.distance};
  }

 private:
  void put(const std::string& name, const std::string& text) const { root_.put("sys/class/" + name, text); }
  PretendedRoot root_{"cards"};
};
using Near = std::pair<unsigned, unsigned>;
constexpr std::uint64_t kSocket0 = 0b0000'1111, kSocket1 = 0b1111'0000;

TEST(NicPlaceTest, CardsOfTheProcessesSocketAreTheNearest) {
  const Cards cards;
  cards.add_interface("eth1", "up", "100000", "4-7");
  cards.add_interface("eth0", "up", "100000", "0-3");
  EXPECT_EQ(cards.near(kSocket0), (Near{0b01, 0}));
  EXPECT_EQ(cards.near(0b0010'0000), (Near{0b10, 0}));
  EXPECT_EQ(cards.near(kSocket0 | kSocket1), (Near{0b11, 1}));
  EXPECT_EQ(cards.near(0), (Near{0, 3}));
}

TEST(NicPlaceTest, AllOnOneSocket) {
  const Cards cards;
  cards.add_interface("eth0", "up", "25000", "0-3");
  cards.add_interface("eth1", "up", "25000", "0-3");
  EXPECT_EQ(cards.near(kSocket0), (Near{0b11, 0}));
  EXPECT_EQ(cards.near(kSocket1), (Near{0b11, 2}));
  EXPECT_EQ(cards.near(0b0001'1000), (Near{0b11, 1}));
}

TEST(NicPlaceTest, WhatIsSlowerOrUnusedOrNoDeviceDoesNotCount) {
  const Cards cards;
  cards.add_interface("data", "up", "100000", "4-7");
  cards.add_interface("office", "up", "1000", "0-3");
  cards.add_interface("spare", "down", "100000", "0-3");
  cards.add_interface("bridge", "up", "100000", "");
  cards.add_interface("lo", "unknown", "", "");
  EXPECT_EQ(cards.near(kSocket0).second, 2u);
  EXPECT_EQ(cards.near(kSocket1).second, 0u);
  EXPECT_EQ(cards.near(kSocket0).first, cards.near(kSocket1).first);
}

TEST(NicPlaceTest, InfiniBandGoesFirst) {
  const Cards cards;
  cards.add_interface("eth0", "up", "400000", "0-3");
  cards.add_infiniband("mlx5_0", "1", "1: DOWN", "0-3");
  EXPECT_EQ(cards.near(kSocket0), (Near{1, 0}));  // no InfiniBand card is active
  cards.add_infiniband("mlx5_1", "2", "4: ACTIVE", "4-7");
  EXPECT_EQ(cards.near(kSocket0), (Near{1, 2}));
  EXPECT_EQ(cards.near(kSocket1), (Near{1, 0}));
}

TEST(NicPlaceTest, KnowsNothingWhereTheSystemSaysNothing) {
  const std::uint64_t mask = 1;
  EXPECT_EQ(sys::nic_place("/nowhere", &mask, 1).nearest, 0u);
  const Cards cards;
  for (int i = 0; i < 40; ++i) cards.add_interface("eth" + std::to_string(i), "up", "", "0-3");
  EXPECT_EQ(cards.near(kSocket0), (Near{~0u, 0}));  // as many as there is room for
}

TEST(CpuPlaceTest, LeavesNoTraceHere) {
  const int before = open_descriptors();
  errno = 77;
  (void)sys::cpu_place();
  (void)sys::nic_place();
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(FileRead, SaysWhenThereIsMore) {
  char text[8];
  std::size_t bytes = 99;
  EXPECT_EQ(sys::file_read("/proc/self/stat", text, sizeof text, &bytes), EFBIG);
  EXPECT_EQ(bytes, 99u);
  EXPECT_EQ(sys::file_read("/nowhere/at/all", text, sizeof text, &bytes), ENOENT);
  EXPECT_EQ(sys::file_read("/dev/null", text, sizeof text, &bytes), 0);
  EXPECT_EQ(bytes, 0u);
}

}  // namespace
}  // namespace stretto::test
