// SPDX-License-Identifier: BSD-3-Clause
// A few ranks stand for all others: the timer finds the same times as for the whole job.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sched/symmetry.hpp"
#include "select/candidates.hpp"
#include "unit/timer_support.hpp"

namespace stretto::test {
namespace {

using select::Candidate;
using select::Machine;
using select::Shape;

// Compares every step of every rank.
void expect_same(const Timer& few, const Timer& whole, int ranks, int period, const std::string& what) {
  ASSERT_EQ(few.end(), whole.end()) << what;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::uint32_t first = few.first_step(rank % period), of_whole = whole.first_step(rank);
    ASSERT_EQ(few.last_step(rank % period) - first, whole.last_step(rank) - of_whole) << what;
    for (std::uint32_t i = 0; of_whole + i < whole.last_step(rank); ++i) {
      ASSERT_EQ(few.step(first + i).begin, whole.step(of_whole + i).begin) << what << " rank " << rank << " step " << i;
      ASSERT_EQ(few.step(first + i).end, whole.step(of_whole + i).end) << what << " rank " << rank << " step " << i;
    }
  }
}

TEST(Symmetry, AFewRanksTakeAsLongAsAll) {
  Random random(11);
  std::set<std::string> found;
  Timer few, whole;
  Builder builder;
  for (int trial = 0; trial < 600; ++trial) {
    const coll::Algorithm& algorithm =
        coll::manifest()[static_cast<std::size_t>(below(random, static_cast<int>(coll::manifest().size())))];
    const int each = 1 + below(random, 3), nodes = 1 + below(random, 3), ranks = each * nodes * (2 + below(random, 4));
    const topo::Hierarchies place = nodes_of<topo::Hierarchies>(ranks, each, nodes);
    const Machine machine{below(random, 2) ? &place : nullptr, random_costs(random)};
    const Shape shape{algorithm.collective, ranks, static_cast<std::uint64_t>(ranks * (1 + below(random, 4)))};
    const Candidate candidate{&algorithm, {1 + below(random, 3), 0, below(random, 3)}};
    const int period = select::period_of(builder, machine, shape, candidate);
    if (period == 0) continue;
    ASSERT_EQ(ranks % period, 0);
    const std::string what = std::string(kCollectiveNames[static_cast<int>(shape.collective)]) + " " + algorithm.name +
                             " on " + std::to_string(ranks) + " ranks, trial " + std::to_string(trial);
    ASSERT_TRUE(select::time(few, machine, shape, candidate, nullptr, period)) << what << ": " << few.failure();
    ASSERT_TRUE(select::time(whole, machine, shape, candidate)) << what;
    ASSERT_LT(few.steps(), whole.steps());
    expect_same(few, whole, ranks, period, what);
    found.insert(std::string(kCollectiveNames[static_cast<int>(shape.collective)]) + " " + algorithm.name);
  }
  for (const char* const name : {"allgather ring", "allreduce ring", "reduce_scatter ring", "alltoall linear"})
    EXPECT_TRUE(found.contains(name)) << name;
  for (const std::string& name : found) EXPECT_FALSE(name.starts_with("bcast") || name.starts_with("scan ")) << name;
}

TEST(Symmetry, NoneWhereRanksDiffer) {
  Builder builder;
  const Machine flat{nullptr, Costs::uniform({.latency = 10}, 0, 0)};
  const auto period = [&](const Machine& machine, Collective collective, const char* name, int ranks,
                          std::uint64_t bytes) {
    return select::period_of(builder, machine, {collective, ranks, bytes},
                             {coll::find_algorithm(collective, name), {1, 0, 0}});
  };
  EXPECT_EQ(period(flat, Collective::allgather, "ring", 12, 8), 1);
  EXPECT_EQ(period(flat, Collective::bcast, "chain", 12, 8), 0);
  EXPECT_EQ(period(flat, Collective::allreduce, "ring", 12, 24), 1);
  EXPECT_EQ(period(flat, Collective::allreduce, "ring", 12, 25), 0);  // parts of another length
  const topo::Hierarchies even = nodes_of<topo::Hierarchies>(24, 2, 3), uneven = nodes_of<topo::Hierarchies>(23, 2, 3);
  EXPECT_EQ(period({&even, flat.costs}, Collective::allgather, "ring", 24, 8), 6);
  EXPECT_EQ(period({&uneven, flat.costs}, Collective::allgather, "ring", 23, 8), 0);
  Machine crowded = flat;
  crowded.costs.processors.count = 2;
  EXPECT_EQ(period(crowded, Collective::allgather, "ring", 12, 8), 0);
}

}  // namespace
}  // namespace stretto::test
