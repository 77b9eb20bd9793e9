// SPDX-License-Identifier: BSD-3-Clause
// stretto-topology RANKS ROOT: the tree of groups that the library would make of a job, and every
// rank's groups, as one JSON object. STRETTO_PLACEMENT says where ranks are. Without it, there is
// one rank on every node of STRETTO_TOPOLOGY. Without both, there is one on every processor of this
// machine.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "topo/hierarchy.hpp"
#include "topo/sources.hpp"

namespace {

using namespace stretto;
using topo::Hierarchy;

std::vector<topo::Locality> localities_of(const topo::Sources& sources, int ranks) {
  std::vector<topo::Locality> localities;
  const auto wanted = [&](int there_are) { return ranks > 0 && ranks < there_are ? ranks : there_are; };
  if (!sources.placement.empty()) {
    for (int r = 0; r < (ranks > 0 ? ranks : 16); ++r) localities.push_back(sources.placement.locality(r));
  } else if (sources.network.nodes() != 0) {
    for (int n = 0; n < wanted(sources.network.nodes()); ++n) {
      localities.push_back(
          topo::find_locality({}, static_cast<std::uint64_t>(n) + 1, sources.network.node_name(n), &sources.network));
    }
  } else {
    const int cpus = wanted(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
    for (int cpu = 0; cpu < cpus; ++cpu) {
      std::vector<std::uint64_t> mask(static_cast<std::size_t>(cpu / 64) + 1);
      mask.back() = std::uint64_t{1} << (cpu % 64);
      localities.push_back(topo::find_locality(sys::cpu_place("", mask.data(), mask.size()), 1, "", nullptr));
      localities.back().nics = sys::nic_place("", mask.data(), mask.size());
    }
  }
  return localities;
}

std::string numbers(const std::vector<int>& list) {
  std::string text = "[";
  for (const int n : list) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

std::vector<int> members(const Hierarchy& h, int group, int root) {
  std::vector<int> list;
  for (int i = 0; i < h.members(group); ++i) list.push_back(h.member(group, i, root));
  return list;
}

// The carriers of a node, where network cards are known. Without a level of nodes, all ranks are on
// one.
std::string carriers_of(const Hierarchy& h, int level, int group) {
  bool nodes = false;
  for (int l = 0; l < h.levels(); ++l) nodes = nodes || h.name(l).is("node");
  const bool is_node = nodes ? h.name(level).is("node") : level == h.levels() - 1;
  if (!is_node || !h.knows_cards()) return "";
  std::vector<int> list;
  for (int i = 0; i < h.carriers(group); ++i) list.push_back(h.carrier(group, i));
  return "\"carriers\": " + numbers(list) + ", ";
}

// The network file's name for a group of its nodes: the switch over them. Each node has one rank.
// Names need no quoting.
std::string name_of(const topo::Sources& sources, const char* level, int rank) {
  const int above = topo::locality_level(level, std::strlen(level)) - topo::kNodeLevel - 1;
  const int number = sources.placement.empty() && above >= 0 ? sources.network.switch_over(rank, above) : -1;
  return number >= 0 ? "\"name\": \"" + std::string(sources.network.switch_name(number)) + "\", " : "";
}

// A group with the groups below it.
std::string tree(const topo::Sources& sources, const Hierarchy& h, int level, int group, int root) {
  std::vector<int> ranks;
  for (int i = 0; i < h.under(group); ++i)
    ranks.push_back(h.order()[static_cast<std::size_t>(h.order_begin(group) + i)]);
  std::string below;
  for (int i = 0; level > 0 && i < h.groups_on(level - 1); ++i) {
    const int child = h.group_on(level - 1, i);
    if (h.group_over(h.order()[static_cast<std::size_t>(h.order_begin(child))], level) != group) continue;
    below += (below.empty() ? "" : ", ") + tree(sources, h, level - 1, child, root);
  }
  return "{\"level\": \"" + std::string(h.name(level).text) + "\", " + name_of(sources, h.name(level).text, ranks[0]) +
         "\"leader\": " + std::to_string(h.leader(group, root)) + ", " + carriers_of(h, level, group) +
         "\"members\": " + numbers(members(h, group, root)) + ", \"ranks\": " + numbers(ranks) + ", \"groups\": [" +
         below + "]}";
}

std::string groups_of(const Hierarchy& h, int rank, int root) {
  std::string text;
  for (int level = 0; level < h.levels() && h.is_member(rank, level, root); ++level) {
    const std::vector<int> list = members(h, h.group_over(rank, level), root);
    if (list.size() > 1) text += (text.empty() ? "" : ", ") + numbers(list);
  }
  return "[" + text + "]";
}

int say(const OptionsReport& report) {
  for (int i = 0; i < report.count; ++i) std::fprintf(stderr, "%s\n", report.messages[i].text);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int root = argc > 2 ? std::atoi(argv[2]) : 0;
  Options options;
  OptionsReport report{};
  topo::Sources sources;
  (void)options_load(options, report);
  sources.read(options, report);
  if (report.errors != 0) return say(report);
  std::vector<topo::Locality> localities = localities_of(sources, argc > 1 ? std::atoi(argv[1]) : 0);
  topo::Placement placement;
  Hierarchy hierarchy;
  const topo::Localities all{
      localities.data(),
      [](void* of, int rank, int level) { return static_cast<topo::Locality*>(of)[rank].domains[level]; },
      [](void* of, int rank) { return static_cast<topo::Locality*>(of)[rank].nics; }};
  const auto count = static_cast<int>(localities.size());
  const bool made = count != 0 && topo::place(&placement, all, topo::known_of(count, all), nullptr, count) &&
                    hierarchy.build(placement, sources.levels);
  if (!made) return std::fprintf(stderr, "no groups can be made of these ranks\n"), 1;
  if (root < 0 || root >= hierarchy.ranks()) {
    return std::fprintf(stderr, "there is no rank %d for the root: ranks 0 to %d have a place\n", root,
                        hierarchy.ranks() - 1),
           1;
  }
  std::string ranks;
  for (int r = 0; r < hierarchy.ranks(); ++r) ranks += (ranks.empty() ? "" : ",\n    ") + groups_of(hierarchy, r, root);
  const int top = hierarchy.levels() - 1;
  std::printf("{\"ranks\": %d, \"root\": %d, \"tree\": %s,\n  \"groups_of_ranks\": [\n    %s]}\n", hierarchy.ranks(),
              root, tree(sources, hierarchy, top, hierarchy.group_on(top, 0), root).c_str(), ranks.c_str());
  return 0;
}
