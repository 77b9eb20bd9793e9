// SPDX-License-Identifier: BSD-3-Clause
// Compositions over hierarchies have two aims: data cross each border as seldom as possible, and
// all levels work at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "coll/hierarchy/compose.hpp"
#include "unit/sched_support.hpp"

namespace stretto::test {
namespace {

using coll::Form;
using coll::HierarchyPlan;
using coll::Problem;
using topo::Hierarchy;
using topo::Placement;

// `ranks` on nodes of `per_node`, with `nodes_per_leaf` on a leaf switch. The ranks go to the nodes
// in blocks or round-robin.
Placement cluster(int ranks, int per_node, int nodes_per_leaf, bool round_robin) {
  Placement p;
  p.start(ranks);
  EXPECT_TRUE(p.add_level("node") && p.add_level("leaf"));
  const int nodes = ranks / per_node;
  for (int r = 0; r < ranks; ++r) {
    p.at(0, r) = round_robin ? r % nodes : r / per_node;
    p.at(1, r) = p.at(0, r) / nodes_per_leaf;
  }
  return p;
}

struct Played {
  std::vector<Schedule> schedules;
  std::string failure;
};
Played make_run(const Placement& placement, const HierarchyPlan& plan, const Job& job, bool nodes_alone = false) {
  topo::Hierarchies hierarchies;
  EXPECT_TRUE(hierarchies.build(placement));
  const Hierarchy& hierarchy = nodes_alone ? hierarchies.nodes : hierarchies.all;
  coll::Builder builder;
  sched::Verifier verifier;
  Played run;
  coll::keeps_promise(verifier, job,
                      [&](const Problem& p) { return coll::build_hierarchical(builder, hierarchy, plan, job, p); });
  run.failure = verifier.failure();
  coll::View view(job);
  for (int r = 0; r < job.problem.size; ++r)
    run.schedules.push_back(coll::build_hierarchical(builder, hierarchy, plan, job, view.of(r)));
  return run;
}
// The units sent between ranks in different domains of a level.
std::uint64_t crossing(const Played& run, const Placement& p, int level) {
  std::uint64_t units = 0;
  for (int r = 0; r < p.ranks; ++r) {
    for (const Step& step : run.schedules[r].steps) {
      if (step.kind == sched::Kind::send && p.at(level, r) != p.at(level, step.peer)) units += step.length;
    }
  }
  return units;
}
// The messages on the longest chain of messages that wait for each other.
int depth(const Played& run) {
  std::map<std::tuple<int, int, std::uint32_t>, int> sent;  // the depth when a message leaves
  std::vector<std::vector<int>> depths(run.schedules.size());
  int most = 0;
  for (bool more = true; more;) {
    more = false;
    for (int r = 0; r < std::ssize(run.schedules); ++r) {
      const Schedule& s = run.schedules[r];
      while (depths[r].size() < s.steps.size()) {  // in the schedule's order, as far as messages have come
        const Step& step = s.steps[depths[r].size()];
        int d = 0;
        for (const auto on : s.dependencies_of(step)) d = std::max(d, depths[r][on]);
        if (step.receives()) {
          const auto message = sent.find({step.peer, r, step.message_index});
          if (message == sent.end()) break;
          d = std::max(d, message->second + 1);
        }
        if (step.kind == sched::Kind::send) sent[{r, step.peer, step.message_index}] = d;
        depths[r].push_back(d);
        most = std::max(most, d);
        more = true;
      }
    }
  }
  return most;
}

Job job_of(Collective collective, int size, std::uint64_t count, int root = 0) {
  return make_job(collective, size, count, root);
}

TEST(Composed, VectorsCrossEveryBorderOnce) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(32, 4, 2, round_robin);  // 8 nodes on 4 leaf switches
    for (const int root : {0, 13}) {
      for (const int segments : {1, 5}) {
        HierarchyPlan plan;
        plan.segments = segments;
        for (const Collective c : {Collective::bcast, Collective::reduce}) {
          const Played run = make_run(p, plan, job_of(c, 32, 100, root));
          EXPECT_EQ(run.failure, "");
          EXPECT_EQ(crossing(run, p, 0), 700u);
          EXPECT_EQ(crossing(run, p, 1), 300u);
        }
      }
    }
    HierarchyPlan plan;
    plan.form = Form::reduce_bcast;
    const Played run = make_run(p, plan, job_of(Collective::allreduce, 32, 100));
    EXPECT_EQ(run.failure, "");
    EXPECT_EQ(crossing(run, p, 0), 1400u);
    EXPECT_EQ(crossing(run, p, 1), 600u);
  }
}

// The units that each domain of a level sends to others.
std::map<int, std::uint64_t> sent_out(const Played& run, const Placement& p, int level) {
  std::map<int, std::uint64_t> out;
  for (int r = 0; r < p.ranks; ++r) {
    for (const Step& step : run.schedules[r].steps) {
      if (step.kind == sched::Kind::send && p.at(level, r) != p.at(level, step.peer))
        out[p.at(level, r)] += step.length;
    }
  }
  return out;
}

// Along a line, every node and every switch sends the vector out at most once. That holds wherever
// the root is, and however the ranks are dealt.
TEST(Composed, InLineNoPortSendsTheVectorTwice) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(32, 4, 2, round_robin);
    for (const int root : {0, 13, 31}) {
      HierarchyPlan plan;
      plan.segments = 5;
      plan.as_chain = true;
      plan.choose(Collective::bcast, "chain");
      plan.choose(Collective::reduce, "chain");
      for (const Collective c : {Collective::bcast, Collective::reduce}) {
        const Played run = make_run(p, plan, job_of(c, 32, 100, root));
        EXPECT_EQ(run.failure, "");
        for (const int level : {0, 1}) {
          EXPECT_EQ(crossing(run, p, level), level == 0 ? 700u : 300u);
          for (const auto& [domain, units] : sent_out(run, p, level))
            EXPECT_LE(units, 100u) << "level " << level << ", domain " << domain;
        }
      }
    }
  }
}

// Repeated halving cuts the line between groups. Out of each of G groups go 2 (G - 1) / G vectors,
// the least that a sum of shares needs.
TEST(Composed, HalvesOfALineLeaveGroupsAsSharesDo) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(32, 4, 2, round_robin);
    topo::Hierarchy hierarchy;
    ASSERT_TRUE(hierarchy.build(p));
    ASSERT_TRUE(hierarchy.splits_in_halves());
    HierarchyPlan plan;
    plan.segments = 2;
    plan.as_chain = true;
    plan.choose(Collective::allreduce, "halving_doubling");
    const Played run = make_run(p, plan, job_of(Collective::allreduce, 32, 128));
    EXPECT_EQ(run.failure, "");
    for (const auto& [level, groups] : {std::pair{0, 8u}, std::pair{1, 4u}}) {
      for (const auto& [domain, units] : sent_out(run, p, level))
        EXPECT_EQ(units, 2 * 128 * (groups - 1) / groups) << "level " << level << ", domain " << domain;
    }
  }
}

// Sums that must keep the ranks' order do not follow a line with another order. There are two ways
// to go along a line.
TEST(Composed, LinesKeepTheirPromises) {
  const Placement p = cluster(11, 4, 2, true);
  for (const Form form : {Form::allreduce_on_top, Form::reduce_bcast}) {
    for (const bool commutative : {false, true}) {
      HierarchyPlan plan;
      plan.as_chain = true;
      plan.form = form;
      plan.choose(Collective::allreduce, "halving_doubling");
      Job job = job_of(Collective::allreduce, 11, 64);
      job.problem.commutative = commutative;
      EXPECT_EQ(make_run(p, plan, job).failure, "");
    }
  }
}

// With two leaf switches, an allreduce needs to cross the link between them once each way.
TEST(Composed, AllreduceOnTopCrossesTheUplinkOnceEachWay) {
  const Placement p = cluster(8, 2, 2, true);
  const Played run = make_run(p, {}, job_of(Collective::allreduce, 8, 64));
  EXPECT_EQ(run.failure, "");
  EXPECT_EQ(crossing(run, p, 1), 2 * 64u);
}

TEST(Composed, GathersAndScattersCarryPartsAcrossOnce) {
  const Placement p = cluster(24, 4, 2, true);  // 6 nodes on 3 leaf switches
  for (const Collective c : {Collective::gather, Collective::scatter}) {
    const Played run = make_run(p, {}, job_of(c, 24, 10, 5));
    EXPECT_EQ(run.failure, "");
    EXPECT_EQ(crossing(run, p, 1), 160u);  // from two leaf switches
  }
}

// With rails, every rank of a node carries its slice over the network.
TEST(Composed, RailsShareTheVector) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(16, 4, 1, round_robin);
    HierarchyPlan plan;
    plan.form = Form::rails;
    const Played run = make_run(p, plan, job_of(Collective::allreduce, 16, 400));
    EXPECT_EQ(run.failure, "");
    for (int r = 0; r < 16; ++r) {
      std::uint64_t carried = 0;
      int inside = 0;
      for (const Step& step : run.schedules[r].steps) {
        if (step.kind != sched::Kind::send) continue;
        if (p.at(0, r) == p.at(0, step.peer))
          ++inside;
        else
          carried += step.length;
      }
      EXPECT_EQ(carried, 2 * 100u) << r;  // recursive doubling over 4 nodes
      EXPECT_EQ(inside, 2 + 2) << r;      // halving and doubling in a node
    }
  }
}

// Two cards on each node. The first is nearest to the first half of its ranks, the second to the
// others.
Placement with_cards(Placement placement, int per_node) {
  std::map<int, int> seen;
  for (int r = 0; r < placement.ranks; ++r)
    EXPECT_TRUE(placement.nics.push({2 * seen[placement.at(0, r)]++ < per_node ? 1u : 2u, 0}));
  return placement;
}
// What each rank sends to other nodes.
std::map<int, std::uint64_t> carried(const Played& run, const Placement& p) {
  std::map<int, std::uint64_t> units;
  for (int r = 0; r < p.ranks; ++r) {
    for (const Step& step : run.schedules[r].steps) {
      if (step.kind == sched::Kind::send && p.at(0, r) != p.at(0, step.peer)) units[r] += step.length;
    }
  }
  return units;
}

// Without the levels of switches there are fewer messages in a row, and more messages cross the
// spine.
TEST(Composed, NodesAlone) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(48, 3, 8, round_robin);
    for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
      for (const int root : {0, 7, 47}) {
        const Job job = job_of(c, 48, 10, c == Collective::allreduce ? 0 : root);
        const Played run = make_run(p, {}, job, true), all = make_run(p, {}, job);
        EXPECT_EQ(run.failure, "");
        EXPECT_LE(depth(run), depth(all));
        EXPECT_EQ(crossing(all, p, 0), c == Collective::allreduce ? 300u : 150u);
        EXPECT_EQ(crossing(run, p, 0), c == Collective::allreduce ? 640u : 150u);  // doubling over 16 nodes
      }
    }
    const Job sum = job_of(Collective::allreduce, 48, 10);
    EXPECT_LT(depth(make_run(p, {}, sum, true)), depth(make_run(p, {}, sum)));
  }
}

// The smallest node has three ranks, so there are three shares. The fourth and fifth rank of
// another node carry none.
TEST(Composed, RailsOfNodesThatDifferInSize) {
  Placement p = cluster(8, 8, 1, false);
  for (int r = 0; r < 8; ++r) p.at(0, r) = r < 3 ? 0 : 1;
  for (const bool commutative : {true, false}) {
    for (const std::uint64_t units : {1u, 2u, 7u, 400u}) {
      HierarchyPlan plan;
      plan.form = Form::rails;
      Job job = job_of(Collective::allreduce, 8, units);
      job.problem.commutative = commutative;
      const Played run = make_run(p, plan, job);
      EXPECT_EQ(run.failure, "") << units;
      const auto shares = carried(run, p);
      EXPECT_EQ(shares.size(), 2 * std::min<std::uint64_t>(3, units));
      EXPECT_EQ(shares.count(6) + shares.count(7), 0u);
    }
  }
}

// With stripes, vectors still cross every border once. They leave and enter a node in equal shares
// by all its cards.
TEST(Composed, StripesShareTheCardsOfANode) {
  for (const bool round_robin : {false, true}) {
    const Placement p = with_cards(cluster(32, 4, 2, round_robin), 4);
    for (const int root : {0, 5, 15, 30}) {
      for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
        SCOPED_TRACE(std::string(kCollectiveNames[static_cast<int>(c)]) + " root " + std::to_string(root));
        HierarchyPlan plan;
        plan.form = Form::stripes;
        const Played run = make_run(p, plan, job_of(c, 32, 100, c == Collective::allreduce ? 0 : root));
        EXPECT_EQ(run.failure, "");
        EXPECT_EQ(crossing(run, p, 0), c == Collective::allreduce ? 1600u : 700u);
        EXPECT_EQ(crossing(run, p, 1), c == Collective::allreduce ? 800u : 300u);
        std::map<int, std::map<std::uint32_t, std::uint64_t>> by_card;  // by node
        std::map<int, int> carriers;
        for (const auto& [rank, units] : carried(run, p)) {
          by_card[p.at(0, rank)][p.nics[rank].nearest] += units;
          ++carriers[p.at(0, rank)];
        }
        for (const auto& [node, cards] : by_card) {
          EXPECT_EQ(carriers[node], 2) << node;
          EXPECT_EQ(cards.at(1), cards.at(2)) << node;
        }
      }
    }
  }
}

// Both cards are on one socket. Two ranks of that socket carry. A rank of the other socket carries
// only if it is the root.
TEST(Composed, StripesOfCardsOnOneSocket) {
  Placement p = cluster(16, 8, 1, false);
  for (int r = 0; r < 16; ++r) ASSERT_TRUE(p.nics.push({3, r % 8 < 4 ? 2u : 0u}));
  HierarchyPlan plan;
  plan.form = Form::stripes;
  const auto carriers = [&](Collective c, int root) {
    const Played run = make_run(p, plan, job_of(c, 16, 100, root));
    EXPECT_EQ(run.failure, "");
    std::vector<int> ranks;
    for (const auto& [rank, units] : carried(run, p)) {
      EXPECT_EQ(units, 50u);
      ranks.push_back(rank);
    }
    return ranks;
  };
  EXPECT_EQ(carriers(Collective::allreduce, 0), (std::vector<int>{4, 5, 12, 13}));
  EXPECT_EQ(carriers(Collective::bcast, 5), (std::vector<int>{4, 5}));
  EXPECT_EQ(carriers(Collective::bcast, 1), (std::vector<int>{1, 5}));
  EXPECT_EQ(carriers(Collective::reduce, 1), (std::vector<int>{12, 13}));
}

// There are as many stripes as the node with the fewest cards has cards. Where no card is known,
// the only stripes are those of the leaders.
TEST(Composed, StripesWithoutCardsAreTheLeaders) {
  const auto same = [](const Schedule& a, const Schedule& b) {
    return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), [](const Step& s, const Step& t) {
      return s.kind == t.kind && s.peer == t.peer && s.message_index == t.message_index && s.length == t.length &&
             s.source_offset == t.source_offset && s.target_offset == t.target_offset;
    });
  };
  HierarchyPlan stripes;
  stripes.form = Form::stripes;
  Placement p = cluster(24, 4, 2, false);
  for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
    for (const int root : {0, 6, 23}) {
      const Job job = job_of(c, 24, 100, c == Collective::allreduce ? 0 : root);
      const Played a = make_run(p, stripes, job), b = make_run(p, {}, job);
      for (int r = 0; r < 24; ++r) EXPECT_TRUE(same(a.schedules[r], b.schedules[r])) << r;
    }
  }
  p = with_cards(std::move(p), 4);
  const auto count = [&] {
    Hierarchy hierarchy;
    EXPECT_TRUE(hierarchy.build(p));
    return coll::stripe_count(hierarchy, stripes);
  };
  EXPECT_EQ(count(), 2);
  for (int r = 8; r < 12; ++r) p.nics[r] = {2, 0};
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(make_run(p, stripes, job_of(Collective::bcast, 24, 100, 7)).failure, "");
}

// The rank of a node that is nearest to its card leads, also in a collective without a root.
TEST(Composed, TheRankNearestToTheCardLeadsItsNode) {
  Placement p = cluster(16, 8, 1, false);
  for (int r = 0; r < 16; ++r) ASSERT_TRUE(p.nics.push({1, r % 8 < 4 ? 2u : 0u}));
  const Played run = make_run(p, {}, job_of(Collective::allreduce, 16, 100));
  EXPECT_EQ(run.failure, "");
  EXPECT_EQ(carried(run, p), (std::map<int, std::uint64_t>{{4, 100}, {12, 100}}));
  const Played rooted = make_run(p, {}, job_of(Collective::bcast, 16, 100, 1));
  EXPECT_EQ(carried(rooted, p), (std::map<int, std::uint64_t>{{1, 100}}));
}

// Between nodes, messages from all ranks of one node to all ranks of another travel together. Every
// rank carries some.
TEST(Composed, CarriersShareTheMessagesBetweenNodes) {
  for (const bool round_robin : {false, true}) {
    const Placement p = cluster(32, 4, 8, round_robin);  // 8 nodes
    for (const bool in_place : {false, true}) {
      Job job = job_of(Collective::alltoall, 32, 3);
      job.problem.in_place = in_place;
      const Played run = make_run(p, {}, job);
      EXPECT_EQ(run.failure, "");
      EXPECT_EQ(crossing(run, p, 0), 32u * 28 * 3);  // nothing travels twice
      for (int r = 0; r < 32; ++r) {
        const auto messages = std::count_if(
            run.schedules[r].steps.begin(), run.schedules[r].steps.end(),
            [&](const Step& step) { return step.kind == sched::Kind::send && p.at(0, r) != p.at(0, step.peer); });
        EXPECT_GE(messages, 1);
        EXPECT_LE(messages, 2);  // 7 nodes, 4 carriers
      }
    }
  }
}

// The chain of messages that wait for each other is as long for many segments as for one: no
// segment waits for a level.
// Each rank limits its exchanges by the lengths that it knows. That must neither hold up others nor
// post everything at once.
TEST(Composed, PartsOfDifferentLengthsGoOneNodeAfterTheOther) {
  Placement nodes;
  nodes.start(13);
  ASSERT_TRUE(nodes.add_level("node"));
  for (int r = 0; r < 13; ++r) nodes.at(0, r) = r % 3 == 0 ? 0 : r % 5;
  for (const std::uint64_t longest : {1u, 9'000u, 70'000u}) {
    Job job;
    job.problem.collective = Collective::alltoallv;
    job.problem.size = 13;
    for (std::uint64_t i = 0; i < 13 * 13; ++i) job.exchanged.push_back(i * i % 7 == 0 ? 0 : i * 2654435761u % longest);
    for (std::uint64_t to = 0; to < 13; ++to) job.exchanged[4 * 13 + to] = longest;
    for (const char* const by : {"", "pairwise", "linear"}) {
      HierarchyPlan plan;
      plan.choose(Collective::alltoall, by);
      const Played run = make_run(nodes, plan, job);
      EXPECT_EQ(run.failure, "") << by;
      int at_once = 0;
      for (const Step& step : run.schedules[4].steps) at_once += step.is_message() && step.dependencies == 0 ? 1 : 0;
      const std::string chosen = by;
      const bool all = chosen == "linear" || (chosen.empty() && longest == 1);
      const int exchanges = chosen == "pairwise" ? 1 : longest == 9'000 ? 5 : 2;
      EXPECT_TRUE(all ? at_once > 11 : at_once <= 2 * exchanges) << at_once << " " << by << " " << longest;
    }
  }
}

// Nodes of 1, 2, 3, ... ranks. Short parts go in one message for each pair of nodes, behind a word;
// long parts straight. Nodes that have nothing for each other send no message.
TEST(Composed, ShortPartsOfDifferentLengthsGoByCarriers) {
  for (const int size : {3, 5, 7, 8, 16}) {
    const auto node_of = [](int r) { return r == 0 ? 0 : r < 3 ? 1 : r < 6 ? 2 : 3; };
    for (const bool mixed : {false, true}) {
      Placement nodes;
      nodes.start(size);
      ASSERT_TRUE(nodes.add_level("node"));
      for (int r = 0; r < size; ++r) nodes.at(0, r) = node_of(mixed ? r * 3 % size : r);
      Job job;
      job.problem.collective = Collective::alltoallv;
      job.problem.size = size;
      std::uint64_t expected_units = 0, expected_messages = 0;
      std::map<std::pair<int, int>, std::uint64_t> short_units;
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
          const std::uint64_t length = (i + 2 * j) % 3 == 0 ? 0 : (i * j) % 5 == 4 ? 900 : (i + j) % 100;
          const std::pair<int, int> pair{nodes.at(0, i), nodes.at(0, j)};
          const bool silent = pair.first == 1 && pair.second == 0;
          job.exchanged.push_back(silent ? 0 : length);
          if (silent || pair.first == pair.second) continue;
          expected_units += length;
          if (length > 99)
            ++expected_messages;
          else
            short_units[pair] += length;
        }
      }
      for (const auto& [pair, units] : short_units) {
        expected_messages += units != 0 ? 1 : 0;
        expected_units += units != 0 ? sizeof(std::uint64_t) : 0;
      }
      HierarchyPlan plan;
      plan.form = Form::carriers;
      plan.most_carried = 99;
      const Played run = make_run(nodes, plan, job);
      EXPECT_EQ(run.failure, "");
      EXPECT_EQ(crossing(run, nodes, 0), expected_units);
      std::uint64_t messages = 0;
      for (int r = 0; r < size; ++r) {
        for (const Step& step : run.schedules[r].steps)
          messages += step.kind == sched::Kind::send && nodes.at(0, r) != nodes.at(0, step.peer) ? 1 : 0;
      }
      EXPECT_EQ(messages, expected_messages);
    }
  }
}

TEST(Composed, SegmentsDoNotWaitForEachOther) {
  const Placement p = cluster(32, 4, 2, false);
  for (const Collective c : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
    HierarchyPlan plan;
    const int one = depth(make_run(p, plan, job_of(c, 32, 96)));
    plan.segments = 8;
    EXPECT_EQ(depth(make_run(p, plan, job_of(c, 32, 96))), one);
    EXPECT_GT(one, 3);
  }
}

TEST(Composed, OperationsThatDoNotCommuteGoFlatWhereGroupsMixRanks) {
  const Placement p = cluster(8, 2, 2, true);
  Job job = job_of(Collective::allreduce, 8, 10);
  job.problem.commutative = false;
  EXPECT_EQ(make_run(p, {}, job).failure, "");
  EXPECT_EQ(make_run(cluster(8, 2, 2, false), {}, job).failure, "");
}

}  // namespace
}  // namespace stretto::test
