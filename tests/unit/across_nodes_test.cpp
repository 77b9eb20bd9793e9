// SPDX-License-Identifier: BSD-3-Clause
// What is built in across nodes, for nodes of many ranks: what a rank has to do in a call.
#include "select/across_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace stretto::test {
namespace {

using select::CommTraits;
using select::Selection;

struct Nodes {
  CommTraits traits;
  topo::Hierarchies hierarchies;

  // So many nodes of `each` ranks. `cache`: ranks of an L3 cache, 0 if ranks are not bound.
  Nodes(int nodes, int each, int cache) {
    topo::Placement placement;
    placement.start(nodes * each);
    const bool placed = (cache == 0 || placement.add_level_of("l3", cache)) && placement.add_level_of("node", each);
    EXPECT_TRUE(placed && hierarchies.build(placement));
    traits = {.ranks = nodes * each, .nodes = nodes};
    traits.place(hierarchies);
  }
  [[nodiscard]] coll::Schedule schedule(Collective collective, std::uint64_t bytes, int rank) const {
    coll::Problem problem;
    problem.collective = collective;
    problem.size = traits.ranks;
    problem.rank = rank;
    problem.count = bytes;
    problem.commutative = true;
    const bool parts =
        collective != Collective::bcast && collective != Collective::reduce && collective != Collective::allreduce;
    const std::uint64_t whole = parts ? bytes * static_cast<std::uint64_t>(traits.ranks) : bytes;
    coll::Builder builder;
    return select::schedule_of(builder, select::selection_across_nodes(collective, traits, whole), hierarchies, traits,
                               whole, problem);
  }
};

int messages_in(const coll::Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.steps.begin(), schedule.steps.end(),
                                        [](const sched::Step& step) { return step.is_message() && step.receives(); }));
}

// No leader hears from all ranks of its node, bound or not.
TEST(AcrossNodes, LeadersHearFewMessages) {
  for (const int cache : {0, 8, 16}) {
    for (const int each : {33, 64, 128}) {
      const Nodes nodes(2, each, cache);
      for (const Collective collective : {Collective::bcast, Collective::reduce, Collective::allreduce,
                                          Collective::gather, Collective::scatter, Collective::allgather}) {
        for (int rank = 0; rank < nodes.traits.ranks; ++rank) {
          const coll::Schedule schedule = nodes.schedule(collective, 8, rank);
          ASSERT_TRUE(schedule.complete);
          EXPECT_LE(messages_in(schedule), 16)
              << kCollectiveNames[static_cast<int>(collective)] << ", 2 nodes of " << each << ", rank " << rank;
        }
      }
    }
  }
}

// The node's caches are levels of their own: of a short Allreduce, one message of a cache's ranks
// leaves it.
TEST(AcrossNodes, RanksOfACacheAreCombinedFirst) {
  constexpr int kEach = 64, kCache = 8;
  const Nodes nodes(2, kEach, kCache);
  int leaving = 0;
  for (int rank = 0; rank < nodes.traits.ranks; ++rank) {
    const coll::Schedule schedule = nodes.schedule(Collective::reduce, 8, rank);
    for (const sched::Step& step : schedule.steps)
      leaving += step.is_message() && !step.receives() && step.peer / kCache != rank / kCache ? 1 : 0;
  }
  EXPECT_EQ(leaving, 2 * kEach / kCache - 1);
}

// A chain of all ranks takes longer to fill than a vector of middle length takes to pass.
TEST(AcrossNodes, NoChainsForMiddleLengthsAmongManyRanks) {
  for (const auto& [count, each] : {std::pair{2, 33}, {2, 64}, {16, 8}, {64, 8}, {64, 128}}) {
    const Nodes nodes(count, each, 0);
    const auto ranks = static_cast<std::uint64_t>(nodes.traits.ranks);
    for (const Collective collective : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
      for (std::uint64_t bytes = 8; bytes < 1024 * ranks && bytes < 64 << 10; bytes *= 2) {
        const Selection& selection = select::selection_across_nodes(collective, nodes.traits, bytes);
        EXPECT_EQ(selection.over, Selection::Over::levels) << bytes;
        const char* const by = selection.down ? selection.down : selection.up;
        EXPECT_STRNE(by, "chain") << kCollectiveNames[static_cast<int>(collective)] << " of " << bytes << " bytes";
      }
    }
  }
}

// Longer vectors go through circulant graphs, from four nodes on.
TEST(AcrossNodes, CirculantGraphsAmongManyRanksOnSeveralNodes) {
  const auto by = [](const Nodes& nodes, std::uint64_t bytes) {
    return std::string(select::selection_across_nodes(Collective::bcast, nodes.traits, bytes).down);
  };
  EXPECT_EQ(by(Nodes(16, 8, 0), 256 << 10), "circulant");
  EXPECT_EQ(by(Nodes(64, 8, 0), 64 << 20), "circulant");
  EXPECT_EQ(by(Nodes(2, 64, 0), 256 << 10), "chain");
  EXPECT_EQ(by(Nodes(8, 4, 0), 1 << 20), "chain");
  // No rank receives a vector twice.
  const Nodes nodes(16, 8, 0);
  for (const int rank : {0, 1, 8, 127}) {
    std::uint64_t received = 0;
    for (const sched::Step& step : nodes.schedule(Collective::bcast, 1 << 20, rank).steps)
      received += step.receives() ? step.length : 0;
    EXPECT_EQ(received, rank == 0 ? 0u : 1u << 20);
  }
}

// Above 64 nodes the timer has chosen: what is built in is within 1.05 of the best candidate.
TEST(AcrossNodes, ManyNodesGoByRowsOfTheirOwn) {
  const Nodes nodes(128, 1, 0);
  const auto of = [&](Collective collective, std::uint64_t bytes) -> const Selection& {
    return select::selection_across_nodes(collective, nodes.traits, bytes);
  };
  EXPECT_STREQ(of(Collective::barrier, 0).across, "dissemination");
  EXPECT_STREQ(of(Collective::bcast, 8).down, "knomial");
  EXPECT_EQ(of(Collective::bcast, 16 << 10).k, 3);
  EXPECT_STREQ(of(Collective::reduce, 16 << 10).up, "scatter_gather");
  EXPECT_EQ(of(Collective::allreduce, 8 << 10).form, coll::Form::rails);
  EXPECT_FALSE(of(Collective::allreduce, 1 << 10).automatic);  // timer and simulation differ
  // A row's k is that of its trees: a root has so many children less one on each level.
  coll::HierarchyPlan plan =
      select::plan_of(of(Collective::bcast, 16 << 10), nodes.hierarchies.nodes, nodes.traits, 16 << 10);
  EXPECT_EQ(plan.choices[static_cast<int>(Collective::bcast)][0].k, 3);
}

// Where ranks of a node do not follow one another, sums of parts cross the network too often.
TEST(AcrossNodes, ReduceScatterNeedsBlocks) {
  const auto backend = [](CommTraits traits, std::uint64_t bytes, bool commutative = true) {
    const Selection& by = select::selection_across_nodes(Collective::reduce_scatter_block, traits, bytes, commutative);
    return by.automatic ? by.across : "the host's";
  };
  CommTraits dealt = Nodes(4, 2, 0).traits;
  EXPECT_STREQ(backend(dealt, 64), "recursive_halving");
  EXPECT_STREQ(backend(dealt, 64 << 10), "ring");
  EXPECT_STREQ(backend(dealt, 64, false), "the host's");  // both need operations that commute
  dealt.in_blocks = false;
  EXPECT_STREQ(backend(dealt, 64), "the host's");
}

// A short Scan goes along a chain that leaves few nodes; a long one along any.
TEST(AcrossNodes, ScanAlongAChain) {
  const auto flat = [](const Nodes& nodes, std::uint64_t bytes) {
    return select::selection_across_nodes(Collective::scan, nodes.traits, bytes).is_flat();
  };
  EXPECT_TRUE(flat(Nodes(4, 2, 0), 8));
  EXPECT_FALSE(flat(Nodes(8, 1, 0), 8));
  EXPECT_TRUE(flat(Nodes(8, 1, 0), 64 << 10));
}

// Few ranks go by the measured rows, whatever was simulated for many.
TEST(AcrossNodes, FewRanksGoByMeasuredRows) {
  const Nodes few(4, 2, 0);
  EXPECT_STREQ(select::selection_across_nodes(Collective::bcast, few.traits, 16 << 10).down, "chain");
  EXPECT_EQ(select::selection_across_nodes(Collective::bcast, few.traits, 1 << 20).over, Selection::Over::chain);
}

}  // namespace
}  // namespace stretto::test
