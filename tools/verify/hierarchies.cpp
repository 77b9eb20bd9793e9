// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <span>

#include "coll/hierarchy/compose.hpp"
#include "trials.hpp"

namespace stretto::verifying {
namespace {

using coll::Algorithm;
using coll::HierarchyPlan;
using coll::Job;
using Random = std::mt19937_64;

constexpr int kMostRanks = 4096;
constexpr int kMostRanksOfParts = 256;  // a collective with a part for each rank has P^2 parts

int below(Random& random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

// Ranks on cores in nested domains of random sizes; some cores are empty. Ranks are in order,
// round-robin, or at random.
topo::Placement random_placement(Random& random, int ranks) {
  std::vector<int> cores(static_cast<std::size_t>(ranks));
  const int gaps = below(random, 3);
  for (int r = 0, core = 0; r < ranks; ++r, ++core) {
    if (gaps && below(random, 6) == 0) core += below(random, 40 * gaps);
    cores[r] = core;
  }
  const int map = below(random, 3);
  if (map == 1) std::shuffle(cores.begin(), cores.end(), random);
  if (map == 2) {
    const int stride = 1 + below(random, 64);
    std::vector<int> dealt;
    for (int first = 0; first < stride; ++first) {
      for (int i = first; i < ranks; i += stride) dealt.push_back(cores[i]);
    }
    cores = dealt;
  }
  static const char* const kNames[] = {"l3", "numa", "socket", "node", "leaf", "spine"};
  topo::Placement placement;
  placement.start(ranks);
  int size = 1;
  for (int level = 0, levels = 1 + below(random, 6); level < levels; ++level) {
    size *= 1 + below(random, level < 3 ? 8 : 20);
    placement.add_level(kNames[level]);
    for (int r = 0; r < ranks; ++r) placement.at(level, r) = cores[r] / size;
  }
  if (below(random, 4) == 0) {  // some ranks are not bound
    for (int i = below(random, ranks); i >= 0; --i) placement.at(0, below(random, ranks)) = topo::Placement::kNowhere;
  }
  if (below(random, 2) == 0) {  // network cards: one of a few is the nearest, or none is known
    const std::uint32_t cards = 1u << below(random, 4);
    for (int r = 0; r < ranks; ++r) {
      const auto nearest =
          static_cast<std::uint32_t>(below(random, 10) == 0 ? 0 : 1 + below(random, static_cast<int>(2 * cards) - 1));
      placement.nics.push(nearest == 0 ? sys::NicPlace{}
                                       : sys::NicPlace{nearest, static_cast<std::uint32_t>(below(random, 3))});
    }
  }
  return placement;
}

HierarchyPlan random_plan(Random& random, int levels) {
  HierarchyPlan plan;
  const std::span<const Algorithm> all = coll::manifest();
  for (int c = 0; c < kCollectives; ++c) {
    for (int level = 0; level < levels; ++level) {
      const Algorithm* const algorithm = &all[static_cast<std::size_t>(below(random, static_cast<int>(all.size())))];
      if (static_cast<int>(algorithm->collective) == c) plan.choices[c][level] = {algorithm, below(random, 6)};
    }
  }
  plan.segments = 1 + below(random, 4);
  plan.form = static_cast<coll::Form>(below(random, coll::kForms));
  plan.node_level = below(random, levels);
  plan.most_carried = static_cast<std::uint64_t>(below(random, 30));
  plan.as_chain = below(random, 3) == 0;
  return plan;
}

constexpr Collective kVectors[] = {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::barrier};
constexpr Collective kParts[] = {Collective::gather,         Collective::gatherv,
                                 Collective::scatter,        Collective::scatterv,
                                 Collective::allgather,      Collective::allgatherv,
                                 Collective::alltoall,       Collective::alltoallv,
                                 Collective::reduce_scatter, Collective::reduce_scatter_block,
                                 Collective::scan,           Collective::exscan};

void try_collective(Findings& findings, Random& random, const topo::Hierarchy& hierarchy, Collective collective,
                    std::uint64_t seed) {
  Job job;
  job.problem.collective = collective;
  job.problem.size = hierarchy.ranks();
  job.problem.root = job.is_rooted() ? below(random, hierarchy.ranks()) : 0;
  job.problem.in_place = collective != Collective::bcast && collective != Collective::barrier && below(random, 2) == 0;
  job.problem.commutative = below(random, 3) != 0;
  job.problem.count = static_cast<std::uint64_t>(below(random, 3) == 0 ? below(random, 5) : below(random, 5000));
  uneven_parts(job, random());
  const HierarchyPlan plan = random_plan(random, hierarchy.levels());
  const auto build_rank = [&](const coll::Problem& p) {
    return coll::build_hierarchical(findings.builder, hierarchy, plan, job, p);
  };
  findings.judge(job, build_rank, [&] {
    return describe(job) + " hierarchy=" + std::to_string(seed) + " levels=" + std::to_string(hierarchy.levels()) +
           " segments=" + std::to_string(plan.segments) + " form=" + std::to_string(static_cast<int>(plan.form)) +
           " node-level=" + std::to_string(plan.node_level) + (plan.as_chain ? " in line" : "");
  });
}

void try_hierarchy(Findings& findings, int ranks, std::uint64_t seed) {
  Random random(seed);
  topo::Hierarchy hierarchy;
  topo::LevelChoice choice;
  if (below(random, 5) == 0) choice.at_most = 1 + below(random, 20);
  if (!hierarchy.build(random_placement(random, ranks), choice)) std::abort();
  for (const Collective collective : kVectors) try_collective(findings, random, hierarchy, collective, seed);
  // These have the forms that hierarchies exist for.
  for (const Collective collective :
       {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::allreduce}) {
    try_collective(findings, random, hierarchy, collective, seed);
  }
  if (ranks > kMostRanksOfParts) return;
  for (const Collective collective : kParts) try_collective(findings, random, hierarchy, collective, seed);
}

}  // namespace

std::vector<Unit> hierarchy_units(int count) {
  std::vector<Unit> units;
  for (int i = 0; i < count; ++i) {
    Random random(static_cast<std::uint64_t>(i) + 1);
    // From 1 to the most, as many small numbers as large ones. Every tenth is the most.
    const double share = static_cast<double>(random() % 1000) / 999;
    const int ranks = i % 10 == 9 ? kMostRanks : static_cast<int>(std::pow(kMostRanks, share));
    const double weight = ranks <= kMostRanksOfParts ? 20.0 * ranks * ranks : 300.0 * ranks;
    units.push_back({weight, [ranks, i](Findings& f) { try_hierarchy(f, ranks, static_cast<std::uint64_t>(i) + 1); }});
  }
  return units;
}

}  // namespace stretto::verifying
