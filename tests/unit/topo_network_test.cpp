// SPDX-License-Identifier: BSD-3-Clause
// Network files: what they mean, and where they are wrong.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topo/hostlist.hpp"
#include "topo/network.hpp"
#include "unit/mistakes.hpp"

namespace stretto::test {
namespace {

using topo::Network;

struct Read {
  Network network;
  FileError error;
  bool good;
  explicit Read(const std::string& text) { good = network.parse(text.data(), text.size(), &error); }
  // The switches above a node, lowest first.
  [[nodiscard]] std::string path(const char* name) const {
    const int node = network.node(name);
    if (node < 0) return "?";
    std::string path;
    for (int level = 0; level < network.levels(); ++level) {
      path += (level ? " " : "") + std::string(network.switch_name(network.switch_over(node, level)));
    }
    return path;
  }
  [[nodiscard]] std::string mistake() const { return good ? "none" : said(error); }
};

TEST(Network, NodeLists) {
  const Read r(
      "# <node-name> <switch-name>\n\nnode01 sw11 sw21\nnode16\tsw11  # same leaf\r\nnode17 sw12 sw22\n  node[32-33] "
      "sw12\nnode49 sw14");
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.network.nodes(), 6);
  EXPECT_EQ(r.network.levels(), 2);
  EXPECT_EQ(r.path("node01"), "sw11 sw21");
  EXPECT_EQ(r.path("node16"), "sw11 sw21");
  EXPECT_EQ(r.path("node33"), "sw12 sw22");
  EXPECT_EQ(r.path("node49"), "sw14 sw14");  // no switch above its leaf: alone there
  EXPECT_EQ(r.path("node02"), "?");
}

TEST(Network, SlurmTree) {
  const Read r(
      "# tree\nSwitchName=s0 Nodes=tux[0-3,12]\nswitchname=s1 NODES=tux[4-7] LinkSpeed=900\nSwitchName=s2 Nodes=tux08\n"
      "SwitchName=s4 Switches=s[0-1]\nSwitchName=s5 Switches=s2\nSwitchName=top Switches=s4,s5 # all\n");
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.network.nodes(), 10);
  EXPECT_EQ(r.network.levels(), 3);
  EXPECT_EQ(r.path("tux12"), "s0 s4 top");
  EXPECT_EQ(r.path("tux5"), "s1 s4 top");
  EXPECT_EQ(r.path("tux08"), "s2 s5 top");
}

TEST(Network, SlurmTreeWithSeveralSpines) {
  const Read r(
      "SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=b\nSwitchName=s4 Switches=s[0-1]\nSwitchName=s5 Switches=s[0-1]\n");
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.path("a"), "s0 s4");
  EXPECT_EQ(r.path("b"), "s1 s4");
}

TEST(Network, WhatScontrolPrints) {
  const Read r(
      "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=tux[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=tux2\n"
      "SwitchName=top Level=1 LinkSpeed=1 Nodes=tux[0-2] Switches=s[0-1]\n");
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.network.nodes(), 3);
  EXPECT_EQ(r.path("tux1"), "s0 top");
  EXPECT_EQ(r.path("tux2"), "s1 top");
}

TEST(Network, SlurmBlocks) {
  std::string text = "BlockSizes=4,8,16\n";
  for (int b = 1; b <= 5; ++b) text += "BlockName=b" + std::to_string(b) + " Nodes=n" + std::to_string(b) + "[01-04]\n";
  const Read r(text);
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.network.levels(), 3);
  EXPECT_EQ(r.path("n101"), "b1 8 nodes from b1 16 nodes from 8 nodes from b1");
  const auto over = [&](const char* node, int level) { return r.network.switch_over(r.network.node(node), level); };
  EXPECT_EQ(over("n101", 1), over("n204", 1));
  EXPECT_NE(over("n101", 1), over("n301", 1));
  EXPECT_EQ(over("n101", 2), over("n401", 2));
  EXPECT_NE(over("n101", 2), over("n501", 2));
}

TEST(Network, MistakesAreToldWithTheirPlace) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"node01\n", "1:1 the node has no switch"},
      {"a s1\na s1\n", "2:1 the node has a switch already"},
      {"a s1 t1\nb s1 t2\n", "2:3 this switch hangs on another one in a line above"},
      {"a s1 s1\n", "1:6 a switch above itself"},
      {"n[1-3 s1\n", "1:2 '[' without ']'"},
      {"n[3-1] s1\n", "1:3 the range runs backwards"},
      {"n[1-] s1\n", "1:5 a number was expected"},
      {"n[1;2] s1\n", "1:4 ',' or ']' was expected"},
      {"a, s1\n", "1:3 a name was expected"},
      {"a$ s1\n", "1:2 ',' was expected"},
      {"n[0-9999999999] s1\n", "1:1 more than a million names"},
      {std::string("a s\x01\n"), "1:4 a control character"},
      {"\nSwitchName=s0 Nodes=\n", "2:15 the value is missing"},
      {"SwitchName=s0\n", "1:1 Nodes or Switches is missing"},
      {"SwitchName=s0 Nodes=a Nodes=b\n", "1:23 given twice"},
      {"SwitchName=s0 Nodes=a colour=red\n",
       "1:23 unknown: SwitchName, Nodes, Switches, LinkSpeed, BlockName or BlockSizes was expected"},
      {"SwitchName=s0 Nodes=a tux\n", "1:23 KEY=VALUE was expected"},
      {"SwitchName=s0 Nodes=a\nSwitchName=s0 Nodes=b\n", "2:12 declared in a line above"},
      {"SwitchName=s0 Nodes=a\nSwitchName=s1 Nodes=b,a\n", "2:23 the node has a switch already"},
      {"Nodes=a\n", "1:1 SwitchName or BlockName was expected"},
      {"SwitchName=s0 Switches=s0\n", "1:24 a switch above itself"},
      {"SwitchName=s0 Nodes=a Switches=s1\nSwitchName=s1 Switches=s0\n",
       "3:1 more than 12 switches above each other, or one above itself"},
      {"BlockName=b1 Switches=s0\n", "1:14 a block has nodes, no switches"},
      {"BlockSizes=4,6\n", "1:14 every size is a multiple of the one before it"},
      {"BlockSizes=4,\n", "1:13 a size was expected after ','"},
      {"BlockSizes=4x\n", "1:13 ',' was expected"},
  };
  for (const auto& [text, mistake] : wrong) EXPECT_EQ(Read(text).mistake(), mistake) << text;
}

TEST(Network, AFileOfManyNodes) {
  std::string text;
  for (int s = 0; s < 500; ++s)
    text += "SwitchName=leaf" + std::to_string(s) + " Nodes=c" + std::to_string(s) + "n[000-199]\n";
  text += "SwitchName=spine Switches=leaf[0-499]\n";
  const Read r(text);
  ASSERT_TRUE(r.good) << r.mistake();
  EXPECT_EQ(r.network.nodes(), 100'000);
  EXPECT_EQ(r.path("c499n199"), "leaf499 spine");
}

std::vector<std::string> expand(const std::string& text) {
  std::vector<std::string> names;
  topo::HostlistError error;
  const auto add = [](void* context, const char* name, std::size_t length) -> const char* {
    static_cast<std::vector<std::string>*>(context)->emplace_back(name, length);
    return nullptr;
  };
  EXPECT_TRUE(topo::expand_hostlist(text.data(), text.size(), add, &names, &error)) << error.what;
  return names;
}
using Names = std::vector<std::string>;

TEST(Hostlist, Ranges) {
  EXPECT_EQ(expand("tux[0-2,12],login"), (Names{"tux0", "tux1", "tux2", "tux12", "login"}));
  EXPECT_EQ(expand("n[008-011]"), (Names{"n008", "n009", "n010", "n011"}));
  EXPECT_EQ(expand("r[1-2]n[1-2].x"), (Names{"r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"}));
  EXPECT_EQ(expand("[7-8]"), (Names{"7", "8"}));
  EXPECT_EQ(expand("n[9-11]"), (Names{"n9", "n10", "n11"}));
}

}  // namespace
}  // namespace stretto::test
