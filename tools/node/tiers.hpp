// SPDX-License-Identifier: BSD-3-Clause
// Groups of ranks within groups, by domains of the machine or by numbers: "l3+numa+socket" puts
// ranks of one L3 cache together, then the first rank of each such group with those of its NUMA
// node, and so on. One group of all that are left is on top. "flat" is that group alone.
#pragma once
#include <string>
#include <vector>

#include "node.hpp"

namespace stretto::node {

// A group of ranks. The first one leads it.
using Group = std::vector<int>;

struct Tier {
  std::vector<Group> groups;
  std::vector<int> group_of;  // by rank; -1: in none
};

// The tiers in which somebody has a peer, lowest first. Empty: no such shape.
std::vector<Tier> tiers_of(const std::string& shape, const Node& node);

}  // namespace stretto::node
