// SPDX-License-Identifier: BSD-3-Clause
#include "job_places.hpp"

#include <map>
#include <set>

namespace stretto::modelling {
namespace {

int node_level(const topo::Placement& places) {
  for (int level = 0; level < places.levels; ++level) {
    if (places.names[level].is("node")) return level;
  }
  return 0;
}

topo::Placement on_hosts(const JobFile& job) {
  topo::Placement places;
  places.start(job.ranks());
  std::map<std::string, std::int32_t> hosts;
  std::vector<std::int32_t> of;
  for (int r = 0; r < job.ranks(); ++r)
    of.push_back(hosts.try_emplace(job.of(r).header().host, static_cast<std::int32_t>(hosts.size())).first->second);
  if (!places.add_level("node")) stop("no memory");
  for (int r = 0; r < job.ranks(); ++r) places.at(0, r) = of[static_cast<std::size_t>(r)];
  return places;
}

// Domains have their numbers within those above.
std::vector<std::int32_t> path_to(const topo::Placement& places, int level, int rank) {
  std::vector<std::int32_t> path;
  for (int above = places.levels - 1; above >= level; --above) path.push_back(places.at(above, rank));
  return path;
}

}  // namespace

topo::Placement placement_of_job(const JobFile& job, const Request& request) {
  topo::Placement places = placement_of(request, job.ranks());
  return places.levels > 0 ? std::move(places) : on_hosts(job);
}

topo::Placement dealt(const topo::Placement& places, const std::string& order) {
  std::map<std::vector<std::int32_t>, std::vector<int>> nodes;
  if (places.levels > 0) {
    const int level = node_level(places);
    for (int r = 0; r < places.ranks; ++r) nodes[path_to(places, level, r)].push_back(r);
  }
  if (nodes.size() < 2) stop("--place: all ranks are on one node; --levels says of others");
  std::vector<int> seats;
  for (std::size_t turn = 0; seats.size() < static_cast<std::size_t>(places.ranks); ++turn) {
    for (const auto& [path, ranks] : nodes) {
      if (order == "slot" && turn == 0) seats.insert(seats.end(), ranks.begin(), ranks.end());
      if (order == "node" && turn < ranks.size()) seats.push_back(ranks[turn]);
    }
  }
  return part_of(places, seats);
}

int nodes_of(const topo::Placement& places) {
  if (places.levels == 0) return 1;
  const int level = node_level(places);
  std::set<std::vector<std::int32_t>> nodes;
  for (int r = 0; r < places.ranks; ++r) nodes.insert(path_to(places, level, r));
  return static_cast<int>(nodes.size());
}

}  // namespace stretto::modelling
