// SPDX-License-Identifier: BSD-3-Clause
// Files of rules: what they say, and where their mistakes are. Also what serves a call by rules, by
// options, and by what is built in.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/tuning.hpp"
#include "select/selector.hpp"
#include "select/shm_rules.hpp"
#include "unit/mistakes.hpp"

namespace stretto::test {
namespace {

using select::Backend;
using select::Choice;
using select::Circumstances;
using select::Rule;
using select::Rules;
using select::Selection;
using select::Selector;
using select::ShmRules;

constexpr std::uint32_t bit(Collective c) { return std::uint32_t{1} << static_cast<int>(c); }

Rules parsed(const std::string& text) {
  Rules rules;
  FileError error;
  EXPECT_TRUE(rules.parse(text.data(), text.size(), &error)) << said(error);
  return rules;
}

Selector selector_of(const Circumstances& at, const Rules& rules) {
  Selector selector;
  EXPECT_TRUE(selector.start(at, rules));
  return selector;
}

const Selection& selection_of(const Selector& selector, const coll::Problem& problem, std::uint64_t bytes) {
  return *selector.able(selector.of(problem.collective, bytes), problem).selection;
}

TEST(Rules, SayWhatTheirLinesSay) {
  const Rules rules = parsed(
      "# of one night\n"
      "\n"
      "allreduce ranks=2-8 nodes=4 bytes=64K-1M: ring segment=16K  # a comment\n"
      "  bcast bytes=0-4K : kchain k=3 segment=4096\r\n"
      "allreduce: hierarchy:rails segment=1M\n"
      "reduce ranks=5:mpi\n"
      "gather ranks=2-:builtin\n"
      "bcast: hierarchy:stripes segment=64K by=chain\n"
      "allreduce: hierarchy by=ring\n"
      "exscan bytes=0-1K: shm:chain\n"
      "alltoallw: hierarchy:carriers by=linear\n");
  ASSERT_EQ(rules.size(), 9u);
  const Rule* const rule = rules.begin();
  EXPECT_EQ(rule[0].selection.collective, Collective::allreduce);
  EXPECT_EQ(rule[0].selection.line, 3u);
  EXPECT_EQ(flat_of(rule[0].selection), coll::find_algorithm(Collective::allreduce, "ring"));
  EXPECT_EQ(rule[0].selection.segment.bytes, 16u << 10);
  EXPECT_TRUE(rule[0].ranks.has(2) && rule[0].ranks.has(8) && !rule[0].ranks.has(1) && !rule[0].ranks.has(9));
  EXPECT_TRUE(rule[0].nodes.has(4) && !rule[0].nodes.has(3) && !rule[0].nodes.has(5));
  EXPECT_TRUE(rule[0].bytes.has(64 << 10) && rule[0].bytes.has(1 << 20) && !rule[0].bytes.has((64 << 10) - 1) &&
              !rule[0].bytes.has((1 << 20) + 1));
  EXPECT_EQ(rule[1].selection.k, 3);
  EXPECT_TRUE(rule[1].ranks.has(1'000'000) && rule[1].nodes.has(1));
  EXPECT_EQ(rule[2].selection.form, coll::Form::rails);
  EXPECT_EQ(rule[2].selection.over, Selection::Over::levels);
  EXPECT_EQ(rule[3].backend, Rule::Backend::host);
  EXPECT_EQ(rule[4].backend, Rule::Backend::builtin);
  EXPECT_TRUE(rule[4].ranks.has(1'000'000) && !rule[4].ranks.has(1));
  EXPECT_EQ(rule[5].selection.form, coll::Form::stripes);
  EXPECT_EQ(rule[5].selection.segment.bytes, 64u << 10);
  EXPECT_STREQ(rule[5].selection.down, "chain");
  EXPECT_STREQ(rule[6].selection.across, "ring");
  EXPECT_EQ(rule[6].selection.down, nullptr);
  EXPECT_EQ(rule[6].selection.memory, nullptr);
  EXPECT_EQ(rule[7].backend, Rule::Backend::shared_memory);
  EXPECT_EQ(rule[7].selection.memory, coll_shm::find_algorithm(Collective::exscan, "chain"));
  EXPECT_EQ(rule[8].selection.form, coll::Form::carriers);
  EXPECT_EQ(rule[8].selection.over, Selection::Over::nodes);
}

TEST(Rules, MistakesHaveAPlace) {
  expect_mistakes<Rules>({
      {"bcast: chain\nbroadcast: chain\n", "2:1 a collective was expected: bcast, allreduce, ..."},
      {"bcast chain\n", "1:7 ranks=, nodes=, bytes= or ':' was expected"},
      {"bcast ranks=x: chain\n", "1:13 a number was expected"},
      {"bcast ranks=8-4: chain\n", "1:15 the range ends before it begins"},
      {"bcast bytes=4Q: chain\n", "1:13 a number of bytes was expected, as 4096 or 4K"},
      {"bcast: ring\n", "1:8 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"bcast:\n", "1:7 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"bcast: hierarchy:rails\n",
       "1:8 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"alltoall: hierarchy:carriers\n",
       "1:11 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"gather: hierarchy:stripes\n",
       "1:9 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"bcast: shm:slices\n", "1:8 an algorithm over shared memory was expected: shm:board or shm:tiers"},
      {"allreduce: shm:\n",
       "1:12 an algorithm over shared memory was expected: shm:flat or shm:root or shm:slices or shm:tiers or "
       "shm:rails"},
      {"gatherv: shm:board\n", "1:10 an algorithm over shared memory was expected: shm:channels"},
      {"allreduce: slices\n", "1:12 mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected"},
      {"scan: shm:chain segment=4K\n", "1:17 text after the end of the rule"},
      {"bcast: mpi k=2\n", "1:12 text after the end of the rule"},
      {"bcast: chain k=2\n", "1:14 this algorithm has no k"},
      {"bcast: kchain k=0\n", "1:15 k is a number from 1"},
      {"bcast: hierarchy k=2\n", "1:18 this algorithm has no k"},
      {"allgather: bruck segment=4K\n", "1:18 this algorithm knows no segments"},
      {"bcast: chain segments=4\n", "1:14 k=, by= or segment= was expected"},
      {"allreduce: hierarchy by=pairwise\n", "1:25 an algorithm of this collective, of bcast or reduce was expected"},
      {"allreduce: ring by=chain\n", "1:17 only what goes over the levels is by another algorithm"},
  });
  Rules rules = parsed("bcast: chain\n");
  FileError error;
  EXPECT_FALSE(rules.parse("bcast: chain\nbroadcast: chain\n", 30, &error));
  EXPECT_TRUE(rules.empty());
}

TEST(Selector, TheLastRuleThatFitsCounts) {
  const Rules rules =
      parsed("bcast: chain\nbcast ranks=8 bytes=1K-: mpi\nbcast nodes=3: binary\nbcast bytes=4K: builtin\n");
  const Selector selector = selector_of({.ranks = 8, .nodes = 4, .across_nodes = true}, rules);
  const auto line = [&](std::uint64_t bytes) { return selector.of(Collective::bcast, bytes).selection->line; };
  EXPECT_EQ(line(8), 1u);
  EXPECT_EQ(line(1 << 10), 2u);
  EXPECT_EQ(line(4 << 10), 0u);
  EXPECT_EQ(selector.of(Collective::bcast, 8).backend, Backend::schedule);
  EXPECT_EQ(selector.of(Collective::bcast, 1 << 10).backend, Backend::host);
  EXPECT_EQ(selector_of({.ranks = 8, .nodes = 3}, rules).of(Collective::bcast, 1 << 20).selection->line, 3u);
  EXPECT_EQ(selector_of({.ranks = 7, .nodes = 1}, rules).of(Collective::bcast, 1 << 20).selection->line, 1u);
  EXPECT_EQ(selector.ruled(), bit(Collective::bcast));
}

TEST(Selector, OptionsRulesAndWhatIsBuiltIn) {
  const Rules rules = parsed("bcast bytes=0-99: mpi\nreduce: chain\nscan: chain\n");
  constexpr auto kAll = kNativeCollectives;
  // On one node, shared memory serves calls for which there is no rule.
  const Selector memory = selector_of(
      {.ranks = 4, .wanted = kAll & ~bit(Collective::reduce), .in_memory = kAll & ~bit(Collective::scan)}, rules);
  EXPECT_EQ(memory.open(), bit(Collective::bcast) | bit(Collective::scan));
  EXPECT_EQ(memory.of(Collective::bcast, 99).backend, Backend::host);
  EXPECT_EQ(memory.of(Collective::bcast, 100).backend, Backend::shared_memory);
  EXPECT_EQ(memory.of(Collective::scan, 100).backend, Backend::schedule);
  // An option leaves this one to the host. The selector is not asked about it.
  EXPECT_EQ(memory.of(Collective::reduce, 8).backend, Backend::shared_memory);
  // Where an option wants schedules, a rule says which one. It cannot refuse.
  const Selector forced = selector_of({.ranks = 4, .forced = kAll, .in_memory = kAll}, rules);
  EXPECT_EQ(forced.open(), kAll);
  EXPECT_EQ(forced.of(Collective::bcast, 8).backend, Backend::schedule);
  EXPECT_EQ(forced.of(Collective::bcast, 8).selection->line, 0u);
  EXPECT_EQ(forced.of(Collective::reduce, 8).selection->line, 2u);
  // Between nodes the table decides, up to the number of nodes for which it is trusted. They may
  // have any number of ranks.
  const Selector few = selector_of({.ranks = 8, .nodes = 4, .across_nodes = true}, Rules());
  EXPECT_EQ(few.of(Collective::bcast, 8).backend, Backend::schedule);
  EXPECT_EQ(few.of(Collective::alltoallv, 0).backend, Backend::host);
  EXPECT_EQ(few.ruled(), 0u);
  const Selector wide = selector_of({.ranks = 384, .nodes = 2, .across_nodes = true}, Rules());
  EXPECT_EQ(wide.of(Collective::bcast, 8).backend, Backend::schedule);
  // Above 64 nodes, some collectives only, and communicators that do not keep too much.
  const Selector hundreds = selector_of({.ranks = 2048, .nodes = 1024, .across_nodes = true}, Rules());
  EXPECT_EQ(hundreds.open(),
            bit(Collective::barrier) | bit(Collective::bcast) | bit(Collective::reduce) | bit(Collective::allreduce));
  const int most = kTuning.schedule_automatic_ranks;
  EXPECT_EQ(selector_of({.ranks = most + 1, .nodes = 1024, .across_nodes = true}, Rules()).open(), 0u);
  const Selector many = selector_of({.ranks = 2 * most, .nodes = most + 1, .across_nodes = true}, rules);
  EXPECT_EQ(many.open(), bit(Collective::bcast) | bit(Collective::reduce) | bit(Collective::scan));
  EXPECT_EQ(many.of(Collective::bcast, 100).backend, Backend::host);
  // On one node without shared memory, the host serves all.
  EXPECT_EQ(selector_of({.ranks = 8}, Rules()).open(), 0u);
}

// A rule that names an algorithm over shared memory opens no way to schedules or to the host.
TEST(Selector, AlgorithmsOverSharedMemory) {
  const Rules rules = parsed("allreduce: shm:slices\nreduce: shm:root\nreduce bytes=1K-: mpi\nscan: builtin\n");
  const Selector memory = selector_of({.ranks = 4, .in_memory = kNativeCollectives}, rules);
  EXPECT_EQ(memory.open(), bit(Collective::reduce));
  EXPECT_EQ(memory.of(Collective::allreduce, 8).backend, Backend::shared_memory);
  EXPECT_EQ(memory.of(Collective::reduce, 8).backend, Backend::shared_memory);
  EXPECT_STREQ(memory.words(memory.of(Collective::reduce, 8)).text,
               "ours, over shared memory by root; line 2 of the rules says so");
  EXPECT_EQ(memory.of(Collective::reduce, 1 << 10).backend, Backend::host);
  // An option that wants schedules overrules the rule.
  const Selector forced =
      selector_of({.ranks = 4, .forced = kNativeCollectives, .in_memory = kNativeCollectives}, rules);
  EXPECT_EQ(forced.of(Collective::allreduce, 8).backend, Backend::schedule);
  EXPECT_EQ(forced.of(Collective::allreduce, 8).selection->line, 0u);
  // Where ranks share no memory, what is built in decides.
  const Selector apart = selector_of({.ranks = 8, .nodes = 4, .across_nodes = true}, rules);
  const Selector built_in = selector_of({.ranks = 8, .nodes = 4, .across_nodes = true}, Rules());
  for (const std::uint64_t bytes : {8, 1 << 20})
    EXPECT_EQ(apart.of(Collective::allreduce, bytes), built_in.of(Collective::allreduce, bytes));
}

TEST(ShmRules, TheLastRuleThatFitsNamesTheAlgorithm) {
  const Rules rules = parsed(
      "allreduce: shm:slices\nallreduce bytes=64-4K: shm:flat\nallreduce bytes=100-200: builtin\n"
      "allreduce nodes=2-: shm:flat\nscan ranks=8: shm:chain\nallreduce bytes=1M-: ring\ngatherv: shm:channels\n");
  ShmRules four;
  ASSERT_TRUE(four.start(rules, 4, 1));
  const coll_shm::Algorithm* const flat = coll_shm::find_algorithm(Collective::allreduce, "flat");
  const coll_shm::Algorithm* const slices = coll_shm::find_algorithm(Collective::allreduce, "slices");
  const auto of = [&](std::uint64_t bytes) { return four.of(Collective::allreduce, bytes); };
  EXPECT_TRUE(of(0) == slices && of(63) == slices && of(4097) == slices && of((1 << 20) - 1) == slices);
  EXPECT_TRUE(of(64) == flat && of(99) == flat && of(201) == flat && of(4096) == flat);
  EXPECT_TRUE(of(100) == nullptr && of(200) == nullptr);
  EXPECT_TRUE(of(1 << 20) == nullptr && of(~std::uint64_t{0}) == nullptr);
  EXPECT_EQ(four.step(Collective::allreduce, 100)->line, 0u);
  EXPECT_EQ(four.step(Collective::allreduce, 64)->line, 2u);
  EXPECT_EQ(four.of(Collective::scan, 8), nullptr);
  EXPECT_EQ(four.step(Collective::scan, 8), nullptr);
  EXPECT_EQ(four.of(Collective::gatherv, 0), coll_shm::find_algorithm(Collective::gatherv, "channels"));
  EXPECT_EQ(four.of(Collective::gather, 0), nullptr);
  EXPECT_EQ(four.line(), 1u);
  // The same object for a communicator of which no rule speaks.
  ASSERT_TRUE(four.start(parsed("allreduce ranks=8: shm:flat\nbcast: chain\n"), 4, 1));
  EXPECT_EQ(of(8), nullptr);
  EXPECT_EQ(four.line(), 0u);
}

// The algorithm of a long Allreduce also depends on where the ranks are.
TEST(Selector, LongAllreducesByWhereTheRanksAre) {
  const auto words = [](int ranks, int each, int nodes_each_switch, std::uint64_t bytes) {
    topo::Placement placement;
    placement.start(ranks);
    EXPECT_TRUE(placement.add_level_of("node", each) && placement.add_level_of("leaf", each * nodes_each_switch));
    topo::Hierarchies hierarchies;
    EXPECT_TRUE(hierarchies.build(placement));
    Rules none;
    Selector selector = selector_of({.ranks = ranks, .nodes = ranks / each, .across_nodes = true}, none);
    selector.place(hierarchies);
    return std::string(selector.words(selector.of(Collective::allreduce, bytes)).text);
  };
  constexpr std::uint64_t kLong = 128 << 10;
  EXPECT_EQ(words(8, 2, 2, kLong),
            "ours, over a chain of all ranks by halving_doubling, exchanged on top, in 4 segments; measured to be "
            "faster from 32768 bytes on");
  EXPECT_NE(words(16, 4, 2, kLong).find("a chain of all ranks by halving_doubling, exchanged on top, in 2 segments"),
            std::string::npos);
  EXPECT_NE(words(12, 3, 2, kLong)
                .find("the leaders of nodes, and within nodes by halving_doubling, exchanged on top, in 4 segments"),
            std::string::npos);
  EXPECT_NE(words(6, 1, 3, kLong).find("all levels by chain, reduced to one rank and back, in 8 segments"),
            std::string::npos);
  EXPECT_NE(
      words(6, 1, 3, 2 * kLong).find("a chain of all ranks by chain, reduced to one rank and back, in 16 segments"),
      std::string::npos);
  EXPECT_NE(words(6, 2, 3, kLong)
                .find("by ring, exchanged on top, in 2 segments; measured to be faster from 5120 bytes a node on"),
            std::string::npos);
}

// Where the root alone knows the lengths, messages go straight if short ones have connections of
// their own. As long as they may get them, Stretto serves the call.
TEST(Selector, WhatIsQuickerByConnections) {
  Rules none;
  Selector selector = selector_of({.ranks = 8, .nodes = 4, .across_nodes = true}, none);
  for (const Collective collective : {Collective::gatherv, Collective::scatterv}) {
    EXPECT_NE(selector.open() >> static_cast<int>(collective) & 1, 0u);
    EXPECT_EQ(selector.of(collective, 0).backend, Backend::host);
    selector.connect(true);
    EXPECT_EQ(selector.of(collective, 0).backend, Backend::schedule);
    const Selection& selection = selection_of(selector, {.collective = collective, .size = 8}, 0);
    EXPECT_TRUE(is_linear(selection));
    EXPECT_EQ(flat_of(selection), coll::find_algorithm(collective, "flat"));
    selector.connect(false);
    EXPECT_EQ(selector.of(collective, 0).backend, Backend::host);
  }
  const Rules rules = parsed("gatherv: flat\nscatterv: binomial\ngather: hierarchy\n");
  const Selector ruled = selector_of({.ranks = 8}, rules);
  EXPECT_TRUE(is_linear(*ruled.of(Collective::gatherv, 0).selection));
  EXPECT_FALSE(is_linear(*ruled.of(Collective::scatterv, 0).selection));
  EXPECT_FALSE(is_linear(*ruled.of(Collective::gather, 0).selection));
}

// A rule may name an algorithm that cannot serve every call of its collective.
TEST(Selector, WhatCannotServeGivesWay) {
  const Rules rules = parsed("allreduce: ring\nalltoallv: bruck\n");
  const Selector selector = selector_of({.ranks = 4}, rules);
  const coll::Algorithm* const ring = coll::find_algorithm(Collective::allreduce, "ring");
  ASSERT_FALSE(ring->serves(false, true));
  coll::Problem sum{.collective = Collective::allreduce, .size = 4, .commutative = true, .count = 100};
  EXPECT_EQ(flat_of(selection_of(selector, sum, 800)), ring);
  sum.commutative = false;
  EXPECT_EQ(flat_of(selection_of(selector, sum, 800)), nullptr);
  const std::uint64_t begins[] = {0, 1, 2, 3, 4};
  EXPECT_EQ(flat_of(selection_of(selector, {.collective = Collective::alltoallv, .size = 4, .begins = begins}, 0)),
            nullptr);
}

TEST(Selector, InWords) {
  const Rules rules = parsed(
      "\nallreduce bytes=0-64K: ring segment=16K\nallreduce bytes=8: mpi\nbcast: kchain k=2\nallreduce bytes=9: "
      "hierarchy:rails\nreduce: builtin\n");
  const Selector selector = selector_of({.ranks = 4, .in_memory = kNativeCollectives}, rules);
  const auto words = [&](Collective c, std::uint64_t bytes) {
    return std::string(selector.words(selector.of(c, bytes)).text);
  };
  EXPECT_EQ(words(Collective::allreduce, 64 << 10),
            "ours, over all ranks, without levels by ring, in 4 segments; line 2 of the rules says so");
  EXPECT_EQ(words(Collective::allreduce, 8), "the MPI's own, line 3 of the rules says so");
  EXPECT_EQ(words(Collective::bcast, 8),
            "ours, over all ranks, without levels by kchain with k = 2, in 1 segment; line 4 of the rules says so");
  EXPECT_EQ(words(Collective::allreduce, 9),
            "ours, over all levels by the default algorithms, by all ranks of a node at once, in 1 segment; line 5 of "
            "the rules says so");
  EXPECT_EQ(words(Collective::reduce, 8), "ours, over shared memory");
}

}  // namespace
}  // namespace stretto::test
