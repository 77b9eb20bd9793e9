// SPDX-License-Identifier: BSD-3-Clause
#include "tiers.hpp"

#include <cstdlib>
#include <map>
#include <sstream>

namespace stretto::node {
namespace {

// The number of the domain of a kind that a core is in; -1: no such kind.
int domain_of(const std::string& kind, const Machine& machine, int core) {
  const int l3 = machine.l3_of(core);
  if (kind == "l3") return l3;
  if (kind == "numa") return machine.numa_of_l3(l3);
  if (kind == "socket") return machine.socket_of_l3(l3);
  return kind == "all" ? 0 : -1;
}

// Puts some ranks into groups of one domain, or of so many consecutive ranks. False: no such kind.
bool split(const std::string& kind, const Node& node, const Group& ranks, Tier& tier) {
  tier.group_of.assign(node.ranks(), -1);
  const int each = std::atoi(kind.c_str());
  std::map<int, int> group_of_domain;
  int index = 0;
  for (const int rank : ranks) {
    const int domain = each > 0 ? index++ / each : domain_of(kind, node.machine(), node.core_of(rank));
    if (domain < 0) return false;
    const auto [found, is_new] = group_of_domain.emplace(domain, static_cast<int>(tier.groups.size()));
    if (is_new) tier.groups.emplace_back();
    tier.groups[found->second].push_back(rank);
    tier.group_of[rank] = found->second;
  }
  return true;
}

}  // namespace

std::vector<Tier> tiers_of(const std::string& shape, const Node& node) {
  std::vector<Tier> tiers;
  Group left;
  for (int r = 0; r < node.ranks(); ++r) left.push_back(r);
  std::istringstream kinds(shape == "flat" ? "all" : shape + "+all");
  for (std::string kind; std::getline(kinds, kind, '+');) {
    Tier tier;
    if (!split(kind, node, left, tier)) return {};
    const bool meet = tier.groups.size() < left.size();
    left.clear();
    for (const Group& group : tier.groups) left.push_back(group.front());
    if (meet) tiers.push_back(tier);
  }
  return tiers;
}

}  // namespace stretto::node
