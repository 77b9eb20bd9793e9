// SPDX-License-Identifier: BSD-3-Clause
// The candidates for a call. Every collective has some, each can be timed, and they come in the
// order of their times.
#include "select/candidates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "select/rules.hpp"
#include "unit/timer_support.hpp"

namespace stretto::test {
namespace {

using select::Candidate;
using select::Machine;
using select::Shape;

sched::Costs cluster() {
  sched::Costs costs = sched::Costs::uniform(
      {.latency = 1200, .send_overhead = 250, .receive_overhead = 250, .gap = 150, .byte_gap = 0.09}, 0.1, 0.06);
  costs.paths[0].piece[0].latency = 250;
  costs.ports[1] = {.there = true, .gap = 10, .byte_gap = 0.08};
  return costs;
}

topo::Hierarchies nodes(int ranks, int each, bool two_cards = false) {
  topo::Placement placement;
  placement.start(ranks);
  EXPECT_TRUE(placement.add_level_of("node", each));
  for (int r = 0; r < ranks && two_cards; ++r) placement.nics.push({r % 2 == 0 ? 1u : 2u, 0});
  topo::Hierarchies hierarchies;
  EXPECT_TRUE(hierarchies.build(placement));
  return hierarchies;
}

TEST(Candidates, EveryCollectiveHasSomeAndAllCanBeTimed) {
  const topo::Hierarchies place = nodes(12, 4), cards = nodes(12, 4, true);
  sched::Timer timer;
  for (int c = 0; c < kCollectives; ++c) {
    if (is_neighborhood(static_cast<Collective>(c))) continue;  // no choice: one message for each neighbour
    for (const bool commutative : {true, false}) {
      const Shape shape{static_cast<Collective>(c), 12, 100'000, 0, commutative};
      for (const Machine& machine :
           {Machine{nullptr, cluster()}, Machine{&place, cluster()}, Machine{&cards, cluster()}}) {
        const auto all = select::candidates(machine, shape);
        EXPECT_FALSE(all.empty()) << kCollectiveNames[c];
        for (const Candidate& candidate : all)
          EXPECT_TRUE(select::time(timer, machine, shape, candidate))
              << kCollectiveNames[c] << " " << candidate.name() << ": " << timer.failure();
      }
    }
  }
}

TEST(Candidates, AreFoundByTheirKeys) {
  const topo::Hierarchies place = nodes(12, 4, true);
  const Shape shape{Collective::allreduce, 12, 100'000};
  for (const Candidate& candidate : select::candidates({&place, cluster()}, shape)) {
    Candidate found;
    ASSERT_TRUE(select::named_candidate(shape, candidate.key().c_str(), &found)) << candidate.key();
    EXPECT_EQ(found.algorithm, candidate.algorithm);
    EXPECT_EQ(found.composition, candidate.composition);
    EXPECT_STREQ(found.by, candidate.by);
  }
  Candidate found;
  for (const char* const none :
       {"", "hierarchy by=", "hierarchy:rails by=chain", "hierarchy:reduce_bcast by=ring", "ring by=ring",
        "hierarchy by=ring ", "hierarchy:chain by=chain", "hierarchy:chain_and_back by=ring"}) {
    EXPECT_FALSE(select::named_candidate(shape, none, &found)) << none;
  }
  EXPECT_FALSE(select::named_candidate({Collective::allgather, 12, 100'000}, "hierarchy:chain", &found));
  EXPECT_FALSE(select::named_candidate({Collective::reduce, 12, 100'000}, "hierarchy:chain_and_back", &found));
}

TEST(Candidates, AreFoundByFormerNames) {
  const Shape shape{Collective::allreduce, 12, 100'000};
  Candidate found;
  ASSERT_TRUE(select::named_candidate(shape, "hierarchy:line by=ring", &found));
  EXPECT_EQ(found.key(), "hierarchy:chain by=ring");
  ASSERT_TRUE(select::named_candidate(shape, "hierarchy:line_and_back", &found));
  EXPECT_EQ(found.key(), "hierarchy:chain_and_back");
}

// Keys are what stands behind the colon in a rule.
TEST(Candidates, AreRules) {
  const topo::Hierarchies place = nodes(12, 4, true);
  for (const Collective c :
       {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::gather, Collective::allgather}) {
    for (const Candidate& candidate : select::candidates({&place, cluster()}, {c, 12, 100'000})) {
      const std::string text = std::string(kCollectiveNames[static_cast<int>(c)]) + ": " + candidate.key();
      select::Rules rules;
      FileError error;
      EXPECT_TRUE(rules.parse(text.data(), text.size(), &error)) << text;
    }
  }
}

// A long vector between nodes with many ranks: each rank carries a share, and the shares go round.
TEST(Candidates, ManyRanksOfANodeShareALongVector) {
  const topo::Hierarchies place = nodes(96, 16);
  const Shape shape{Collective::allreduce, 96, 1 << 20};
  const auto time_of = [&](const char* key, int segments) {
    Candidate candidate;
    EXPECT_TRUE(select::named_candidate(shape, key, &candidate)) << key;
    candidate.parameters.segments = segments;
    sched::Timer timer;
    EXPECT_TRUE(select::time(timer, {&place, cluster()}, shape, candidate));
    return timer.end();
  };
  const double rails = time_of("hierarchy:rails by=ring", 1);
  EXPECT_LT(rails, 0.8 * time_of("hierarchy:rails", 1));
  for (const int segments : {1, 4, 16}) EXPECT_LT(rails, 0.8 * time_of("hierarchy", segments)) << segments;
}

// The chain has another order than the ranks where ranks are dealt to nodes in turn, or where the
// root is elsewhere. A sum must then be allowed to follow the chain.
TEST(Candidates, ALineWhereItIsNotTheRanks) {
  const topo::Hierarchies blocks = nodes(12, 4);
  topo::Placement dealt;
  dealt.start(12);
  ASSERT_TRUE(dealt.add_level("node"));
  for (int r = 0; r < 12; ++r) dealt.at(0, r) = r % 3;
  topo::Hierarchies in_turn;
  ASSERT_TRUE(in_turn.build(dealt));
  const auto chains = [](const topo::Hierarchies& place, const Shape& shape) {
    std::set<std::string> found;
    for (const Candidate& candidate : select::candidates({&place, cluster()}, shape)) {
      if (candidate.key().find("hierarchy:chain") == 0) found.insert(candidate.key());
    }
    return found;
  };
  EXPECT_TRUE(chains(blocks, {Collective::allreduce, 12, 100'000}).empty());
  EXPECT_FALSE(chains(blocks, {Collective::bcast, 12, 100'000, 5}).empty());
  EXPECT_EQ(chains(in_turn, {Collective::allreduce, 12, 100'000}),
            (std::set<std::string>{"hierarchy:chain", "hierarchy:chain by=bine", "hierarchy:chain by=circulant",
                                   "hierarchy:chain by=halving_doubling", "hierarchy:chain by=recursive_multiplying",
                                   "hierarchy:chain by=ring", "hierarchy:chain_and_back",
                                   "hierarchy:chain_and_back by=chain", "hierarchy:chain_and_back by=circulant"}));
  EXPECT_TRUE(chains(in_turn, {Collective::reduce, 12, 100'000, 0, false}).empty());
  EXPECT_TRUE(chains(in_turn, {Collective::gather, 12, 100'000}).empty());
}

TEST(Candidates, StripesWhereNodesHaveCards) {
  const topo::Hierarchies one = nodes(12, 4), two = nodes(12, 4, true);
  const auto striped = [](const topo::Hierarchies& place, Collective collective) {
    const auto all = select::candidates({&place, cluster()}, {collective, 12, 100'000});
    return std::count_if(all.begin(), all.end(), [](const Candidate& candidate) {
      return std::string("hierarchy:stripes") == candidate.key();
    });
  };
  for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
    EXPECT_EQ(striped(one, c), 0);
    EXPECT_GT(striped(two, c), 0);
  }
  EXPECT_EQ(striped(two, Collective::gather), 0);
  // Each card has a port. (In a bcast the root still hands everything to its own node.)
  sched::Timer timer;
  for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
    const Shape shape{c, 12, 16 << 20};
    const auto time_of = [&](const char* composition) {
      EXPECT_TRUE(select::time(timer, {&two, cluster()}, shape,
                               {nullptr, {64, 0, 0}, select::find_composition(c, composition)}));
      return timer.end();
    };
    EXPECT_LT(time_of("hierarchy:stripes"), 0.8 * time_of("hierarchy")) << kCollectiveNames[static_cast<int>(c)];
  }
}

TEST(Candidates, EstimatesAreSortedAndTheirPartsAddUp) {
  const topo::Hierarchies place = nodes(32, 8);
  const Machine machine{&place, cluster()};
  for (const std::uint64_t bytes : {8u, 65536u, 1u << 20}) {
    const Shape shape{Collective::allreduce, 32, bytes};
    const auto all = select::estimates(machine, shape);
    ASSERT_GT(all.size(), 4u);
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_LE(all[0].time, all[i].time);
      EXPECT_TRUE(i == 0 || all[i - 1].time <= all[i].time);
      EXPECT_NEAR(all[i].path.total(), all[i].time, 1e-6 * all[i].time) << all[i].candidate.name();
    }
  }
}

// The timer finds what is well known about Allreduce: few messages for short vectors, few bytes for
// long ones.
TEST(Candidates, LengthDecides) {
  const Machine machine{nullptr, cluster()};
  const auto best = [&](std::uint64_t bytes) {
    return std::string(select::estimates(machine, {Collective::allreduce, 32, bytes})[0].candidate.algorithm->name);
  };
  EXPECT_EQ(best(8), "recursive_doubling");
  EXPECT_TRUE(best(16 << 20) == "ring" || best(16 << 20) == "halving_doubling");
}

TEST(Candidates, OperationsThatDoNotCommuteAreNotGivenToTheRing) {
  const Shape shape{Collective::allreduce, 8, 1 << 20, 0, false};
  for (const Candidate& candidate : select::candidates({nullptr, cluster()}, shape))
    EXPECT_STRNE(candidate.algorithm->name, "ring");
}

TEST(Candidates, WhatNeedsTooManyStepsIsLeftOut) {
  const auto all = select::estimates({nullptr, cluster()}, {Collective::bcast, 512, 65536}, 10'000);
  ASSERT_FALSE(all.empty());
  for (const select::Estimate& each : all) EXPECT_STRNE(each.candidate.algorithm->name, "scatter_ring");
}

TEST(Candidates, ChainsByTheModelAreTheBestChains) {
  const Machine machine{nullptr, cluster()};
  const Shape shape{Collective::reduce, 100, 8};
  const int best = select::best_chain_count(machine, shape);
  sched::Timer timer;
  const auto time_of = [&](int k) {
    EXPECT_TRUE(select::time(timer, machine, shape, {coll::find_algorithm(Collective::reduce, "kchain"), {1, k, 0}}));
    return timer.end();
  };
  const double least = time_of(best);
  for (int k = 1; k < 100; ++k) EXPECT_GE(time_of(k), least * (1 - 1e-9)) << k;
}

}  // namespace
}  // namespace stretto::test
