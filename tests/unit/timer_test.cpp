// SPDX-License-Identifier: BSD-3-Clause
// Compares the timer with arithmetic by hand, with a second timer, and with itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sched/critical_path.hpp"
#include "unit/timer_support.hpp"

namespace stretto::test {
namespace {

using sched::Cause;
using sched::GapRule;
using sched::Idle;
using sched::LogGP;
using sched::Side;

// Two ranks or more, each with the steps that `emit` gives it.
template <class Emit>
bool time_steps(Timer& timer, int ranks, const Costs& costs, Emit emit) {
  return timer.run({.ranks = ranks}, costs, [&](Builder& b, int rank) {
    emit(b, rank);
    return b.finish();
  });
}
coll::Slice bytes(std::uint64_t count, std::uint64_t from = 0) { return {sched::Buffer::receive, from, count}; }

Costs plain() {
  return Costs::uniform({.latency = 10, .send_overhead = 2, .receive_overhead = 3, .gap = 5}, 0.25, 0.5);
}

TEST(Timer, OneMessage) {
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 2, plain(),
                         [](Builder& b, int rank) { rank == 0 ? b.send(1, bytes(8)) : b.recv(0, bytes(8)); }));
  EXPECT_EQ(timer.rank(0).end, 2);
  EXPECT_EQ(timer.rank(1).end, 15);
  EXPECT_EQ(timer.end(), 15);
  EXPECT_EQ(timer.rank(1).idle[static_cast<int>(Idle::wire)], 12);
  EXPECT_EQ(timer.rank(1).busy(), 3);
}

TEST(Timer, WorkCountsByItsBytes) {
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 2, plain(), [](Builder& b, int rank) {
    if (rank == 0) {
      b.copy(bytes(8), bytes(8, 8));
      b.send(1, bytes(8, 8));
    } else {
      b.recv_reduce(0, bytes(8), bytes(8), Side::right);
      b.reduce(bytes(8), bytes(8, 8), Side::right);
    }
  }));
  EXPECT_EQ(timer.rank(0).end, 4 + 2);
  EXPECT_EQ(timer.rank(1).end, 4 + 2 + 10 + 3 + 2 + 2);
  EXPECT_EQ(timer.rank(1).idle[static_cast<int>(Idle::partner)], 4);
}

TEST(Timer, LongMessagesOccupyWireAndPorts) {
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].byte_gap = 1;
  Timer timer;
  // Two senders at the same time: the second message follows the first into the receiver's port.
  ASSERT_TRUE(time_steps(timer, 3, costs, [](Builder& b, int rank) {
    if (rank != 0) return void(b.send(0, bytes(101)));
    b.recv(1, bytes(101));
    b.recv(2, bytes(101, 101));
  }));
  EXPECT_EQ(timer.end(), 2 + 10 + 100 + 100 + 3);
  EXPECT_EQ(timer.rank(0).idle[static_cast<int>(Idle::port)], 100 - 3);
  // One sender: its own port holds it back.
  ASSERT_TRUE(time_steps(timer, 3, costs, [](Builder& b, int rank) {
    if (rank != 0) return void(b.recv(0, bytes(101)));
    b.send(1, bytes(101));
    b.send(2, bytes(101));
  }));
  EXPECT_EQ(timer.end(), 105 + 2 + 10 + 100 + 3);
}

TEST(Timer, GapPerDirectionOrBetweenAnyTwo) {
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].gap = 100;
  const auto relay = [](Builder& b, int rank) {
    if (rank == 0) b.send(1, bytes(1));
    if (rank == 1) b.recv(0, bytes(1)), b.send(2, bytes(1));
    if (rank == 2) b.recv(1, bytes(1));
  };
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 3, costs, relay));
  EXPECT_EQ(timer.end(), 15 + 15);
  costs.gap_rule = GapRule::any_two;
  ASSERT_TRUE(time_steps(timer, 3, costs, relay));
  EXPECT_EQ(timer.end(), 12 + 100 + 15);
  EXPECT_EQ(timer.rank(1).idle[static_cast<int>(Idle::gap)], 97);
}

TEST(Timer, WorksWhileTheGapHoldsMessagesBack) {
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].gap = 100;
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 2, costs, [](Builder& b, int rank) {
    if (rank == 1) return void((b.recv(0, bytes(8)), b.recv(0, bytes(8, 8))));
    b.send(1, bytes(8));
    b.send(1, bytes(8, 8));
    b.copy(bytes(80, 100), bytes(80, 200));
  }));
  EXPECT_EQ(timer.rank(0).end, 102);
  EXPECT_EQ(timer.rank(0).busy(), 2 + 40 + 2);
}

// Other work of a processor delays what comes after, and not the message itself.
TEST(Timer, HandlingIsDoneBetweenMessages) {
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].handling = 7;
  Timer timer;
  ASSERT_TRUE(
      time_steps(timer, 2, costs, [](Builder& b, int rank) { rank == 0 ? b.send(1, bytes(8)) : b.recv(0, bytes(8)); }));
  EXPECT_EQ(timer.rank(0).end, 2 + 7);
  EXPECT_EQ(timer.end(), 2 + 10 + 3);
  EXPECT_EQ(timer.rank(1).busy(), 7 + 3);
  EXPECT_EQ(critical_path(timer).total(), timer.end());
  // Both ways at once. When the messages had come, both receives were posted and both sends were
  // seen to be complete.
  ASSERT_TRUE(time_steps(timer, 2, costs, [](Builder& b, int rank) {
    b.send(1 - rank, bytes(8));
    b.recv(1 - rank, bytes(8, 8));
  }));
  EXPECT_EQ(timer.end(), 2 + 2 * 7 + 3);
  EXPECT_EQ(critical_path(timer).overhead, timer.end());
  ASSERT_TRUE(time_algorithm(timer, costs, Collective::allreduce, "ring", 9, 100));
  EXPECT_NEAR(critical_path(timer).total(), timer.end(), 1e-9);
}

TEST(Timer, ParametersByLength) {
  Costs costs = plain();
  for (auto& path : costs.paths) {
    path.count = 2;
    path.piece[1] = {.from_bytes = 9, .latency = 50};
  }
  Timer timer;
  const auto one = [&](std::uint64_t length) {
    EXPECT_TRUE(time_steps(timer, 2, costs, [&](Builder& b, int rank) {
      rank == 0 ? b.send(1, bytes(length)) : b.recv(0, bytes(length));
    }));
    return timer.end();
  };
  EXPECT_EQ(one(8), 15);
  EXPECT_EQ(one(9), 50);
}

TEST(Timer, RanksMayEnterLate) {
  Timer timer;
  const double starts[] = {0, 100};
  const auto emit = [&](Builder& b, int rank) {
    rank == 0 ? b.send(1, bytes(8)) : b.recv(0, bytes(8));
    return b.finish();
  };
  ASSERT_TRUE(timer.run({.ranks = 2, .starts = starts}, plain(), emit));
  EXPECT_EQ(timer.rank(1).start, 100);
  EXPECT_EQ(timer.rank(1).end, 103);
  EXPECT_EQ(timer.rank(1).busy(), 3);
}

TEST(Timer, SaysWhatIsWrongWithSchedules) {
  Timer timer;
  EXPECT_FALSE(time_steps(timer, 2, plain(), [](Builder& b, int rank) {
    if (rank == 0) b.send(1, bytes(8));
  }));
  EXPECT_STREQ(timer.failure(), "a message that nobody receives");
  EXPECT_FALSE(time_steps(timer, 2, plain(), [](Builder& b, int rank) {
    if (rank == 0) b.recv(1, bytes(8));
  }));
  EXPECT_STREQ(timer.failure(), "a message that nobody sends");
  EXPECT_FALSE(time_steps(timer, 2, plain(),
                          [](Builder& b, int rank) { rank == 0 ? b.recv(1, bytes(8)) : b.send(0, bytes(9)); }));
  EXPECT_STREQ(timer.failure(), "a message of another length than expected");
  EXPECT_FALSE(time_steps(timer, 2, plain(),
                          [](Builder& b, int rank) { b.recv(1 - rank, bytes(8)), b.send(1 - rank, bytes(8)); }));
  EXPECT_STREQ(timer.failure(), "a rank waits for ever");
}

// ---- ports that ranks share ----

TEST(Timer, ANodesRanksShareItsPort) {
  const topo::Hierarchy hierarchy = nodes_of(4, 2);
  Costs costs = plain();
  costs.paths[0].piece[0].latency = 1;
  costs.ports[1] = {.there = true, .gap = 20};
  Timer timer;
  // 0 and 1 send to 2 and 3 on the other node at the same time. One of them waits at the port.
  // Within a node no rank waits.
  const auto emit = [&](int distance) {
    return timer.run({.ranks = 4, .hierarchy = &hierarchy}, costs, [&](Builder& b, int rank) {
      if (rank / distance % 2 == 0)
        b.send(rank + distance, bytes(8));
      else
        b.recv(rank - distance, bytes(8));
      return b.finish();
    });
  };
  ASSERT_TRUE(emit(2));
  EXPECT_EQ(timer.rank(2).end, 15);
  EXPECT_EQ(timer.rank(3).end, 35);
  EXPECT_EQ(timer.rank(3).idle[static_cast<int>(Idle::port)], 20);
  ASSERT_TRUE(emit(1));
  EXPECT_EQ(timer.end(), 6);
}

TEST(Timer, ANodesCardsArePortsOfTheirOwn) {
  topo::Placement placement;
  placement.start(8);
  ASSERT_TRUE(placement.add_level_of("node", 4));
  for (int r = 0; r < 8; ++r) ASSERT_TRUE(placement.nics.push({r % 4 < 3 ? 1u : 2u, 0}));
  topo::Hierarchy hierarchy;
  ASSERT_TRUE(hierarchy.build(placement));
  Costs costs = plain();
  costs.ports[1] = {.there = true, .gap = 20};
  Timer timer;
  // Every rank of the first node sends to one of the other, at the same time. Three go by the first
  // card, one by the second.
  ASSERT_TRUE(timer.run({.ranks = 8, .hierarchy = &hierarchy}, costs, [&](Builder& b, int rank) {
    if (rank < 4)
      b.send(rank + 4, bytes(8));
    else
      b.recv(rank - 4, bytes(8));
    return b.finish();
  }));
  EXPECT_EQ(timer.rank(4).end, 15);
  EXPECT_EQ(timer.rank(5).end, 35);
  EXPECT_EQ(timer.rank(6).end, 55);
  EXPECT_EQ(timer.rank(7).end, 15);
}

TEST(Timer, ARestedPortLetsABurstThrough) {
  Costs costs = plain();
  costs.ports[0] = {.there = true, .byte_gap = 10, .burst_bytes = 20};
  costs.paths[0].piece[0].gap = 0;
  Timer timer;
  // One rank sends messages of 11 bytes. Two are a burst. Each further one is through when the port
  // has made up for the first.
  ASSERT_TRUE(time_steps(timer, 5, costs, [](Builder& b, int rank) {
    for (int to = 1; to < 5 && rank == 0; ++to) b.send(to, bytes(11));
    if (rank > 0) b.recv(0, bytes(11));
  }));
  for (int r = 1; r < 3; ++r) EXPECT_EQ(timer.rank(r).end, 2 * r + 10 + 3);
  for (int r = 3; r < 5; ++r) EXPECT_EQ(timer.rank(r).end, 2 + (r - 2) * 10 * 10 + 10 + 3);
  // Longer than a burst: what exceeds the burst takes its time.
  ASSERT_TRUE(time_steps(timer, 2, costs,
                         [](Builder& b, int rank) { rank == 0 ? b.send(1, bytes(31)) : b.recv(0, bytes(31)); }));
  EXPECT_EQ(timer.rank(1).end, 2 + 10 + 10 * 10 + 3);
}

TEST(Timer, MessagesMayShareAPort) {
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].byte_gap = 1;
  costs.port_rule = sched::PortRule::fair;
  Timer timer;
  const auto senders = [&](std::initializer_list<int> lengths) {
    const std::vector<int> all(lengths);
    return time_steps(timer, static_cast<int>(all.size()) + 1, costs, [&](Builder& b, int rank) {
      std::uint64_t from = 0;
      for (int r = 1; r <= static_cast<int>(all.size()); ++r) {
        const auto length = static_cast<std::uint64_t>(all[static_cast<std::size_t>(r - 1)]);
        if (rank == r) b.send(0, bytes(length));
        if (rank == 0) b.recv(r, bytes(length, from));
        from += length;
      }
    });
  };
  // Alone: 2 + 10 + 100 + 3. If two come together, both are through after 200, and then the
  // processor takes one after the other.
  ASSERT_TRUE(senders({101}));
  EXPECT_EQ(timer.end(), 115);
  ASSERT_TRUE(senders({101, 101}));
  EXPECT_EQ(timer.end(), 12 + 200 + 5 + 3);  // the gap counts from the first
  // A shorter message is through when both have had its bytes. The longer one has the rest for
  // itself.
  ASSERT_TRUE(senders({101, 41}));
  EXPECT_EQ(timer.step(1).begin, 12 + 80);
  EXPECT_EQ(timer.end(), 12 + 140 + 3);
}

// ---- processors that ranks share ----

TEST(Timer, RanksTakeTurnsAtAProcessor) {
  Costs costs = plain();
  const auto copy = [](Builder& b, int) { b.copy(bytes(8), bytes(8, 8)); };
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 3, costs, copy));
  EXPECT_EQ(timer.end(), 4);
  costs.processors = {.count = 2};
  ASSERT_TRUE(time_steps(timer, 3, costs, copy));
  EXPECT_EQ(timer.rank(1).end, 4);
  EXPECT_EQ(timer.rank(2).end, 8);
  EXPECT_EQ(timer.rank(2).idle[static_cast<int>(Idle::crowd)], 4);
  EXPECT_EQ(timer.rank(2).busy(), 4);
  // Nodes have processors of their own.
  const topo::Hierarchy hierarchy = nodes_of(4, 2);
  costs.processors = {.count = 1, .level = 0};
  ASSERT_TRUE(timer.run({.ranks = 4, .hierarchy = &hierarchy}, costs, [&](Builder& b, int rank) {
    copy(b, rank);
    return b.finish();
  }));
  EXPECT_EQ(timer.rank(2).end, 4);
  EXPECT_EQ(timer.rank(3).end, 8);
  EXPECT_EQ(sched::critical_path(timer).total(), timer.end());
}

TEST(Timer, WhoWaitsForAMessageLooksInTurn) {
  Costs costs = plain();
  costs.processors = {.count = 1};
  const auto chain = [](Builder& b, int rank) {
    if (rank > 0) b.recv(rank - 1, bytes(8));
    if (rank < 2) b.send(rank + 1, bytes(8));
  };
  Timer timer;
  ASSERT_TRUE(time_steps(timer, 3, costs, chain));
  const double without = timer.end();
  costs.processors.turn = 100;
  ASSERT_TRUE(time_steps(timer, 3, costs, chain));
  EXPECT_EQ(timer.end(), without + 100);  // rank 2 is alone when its message comes
  EXPECT_EQ(timer.rank(1).idle[static_cast<int>(Idle::crowd)], 100);
  EXPECT_EQ(sched::critical_path(timer).total(), timer.end());
  // A rank that is busy when a message comes takes it afterwards without waiting.
  ASSERT_TRUE(time_steps(timer, 2, costs, [](Builder& b, int rank) {
    if (rank == 0)
      b.send(1, bytes(8));
    else
      b.copy(bytes(1000), bytes(1000, 1000)), b.recv(0, bytes(8, 4000));
  }));
  EXPECT_EQ(timer.rank(1).idle[static_cast<int>(Idle::crowd)], 2);  // rank 0 sends
}

// ---- against the slow timer ----

TEST(Timer, AgreesWithTheSlowTimer) {
  Random random(7);
  Timer timer;
  Builder builder;
  for (int trial = 0; trial < 400; ++trial) {
    const auto algorithms = coll::manifest();
    const coll::Algorithm& algorithm =
        algorithms[static_cast<std::size_t>(below(random, static_cast<int>(algorithms.size())))];
    const int ranks = 1 + below(random, 14);
    const coll::Parameters parameters{1 + below(random, 4), 0, below(random, 3)};
    const int root = below(random, ranks);
    const auto count = static_cast<std::uint64_t>(1 + below(random, 30));
    const topo::Hierarchy hierarchy = nodes_of(ranks, 1 + below(random, 4), 1 + below(random, 3));
    const bool composed = below(random, 2) == 0;
    coll::HierarchyPlan plan;
    plan.segments = parameters.segments;
    const auto build = [&](Builder& b, int rank) {
      const Problem problem = problem_of(algorithm.collective, ranks, rank, count, root);
      return composed ? coll::build_hierarchical(b, hierarchy, plan, problem)
                      : coll::build(b, algorithm, problem, parameters);
    };
    const Costs costs = random_costs(random);
    ASSERT_TRUE(timer.run({.ranks = ranks, .hierarchy = &hierarchy}, costs, build)) << timer.failure();
    std::vector<Schedule> schedules;
    for (int r = 0; r < ranks; ++r) schedules.push_back(build(builder, r));
    SlowTimer slow(std::move(schedules), costs, &hierarchy);
    const auto& states = slow.run();
    for (int r = 0; r < ranks; ++r) {
      const auto& own = states[static_cast<std::size_t>(r)];
      std::vector<std::uint32_t> order(own.size());  // in which the timer numbers steps
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return own[a].step.priority < own[b].step.priority; });
      for (std::uint32_t place = 0; place < own.size(); ++place) {
        const std::uint32_t i = order[place];
        const Timer::View step = timer.step(timer.first_step(r) + place);
        ASSERT_TRUE(own[i].begun);
        ASSERT_EQ(step.begin, own[i].begin)
            << algorithm.name << " ranks " << ranks << " rank " << r << " step " << i << " trial " << trial;
        ASSERT_EQ(step.end, own[i].end);
      }
    }
  }
}

// ---- idle times and critical path ----

TEST(Timer, BusyAndIdleAddUp) {
  Timer timer;
  Costs costs = plain();
  for (auto& path : costs.paths) path.piece[0].byte_gap = 0.125;
  ASSERT_TRUE(time_algorithm(timer, costs, Collective::allreduce, "ring", 13, 1000, {.segments = 3}));
  for (int r = 0; r < 13; ++r) {
    double busy = 0;
    for (std::uint32_t s = timer.first_step(r); s < timer.last_step(r); ++s)
      busy += timer.step(s).end - timer.step(s).begin;
    EXPECT_NEAR(timer.rank(r).busy(), busy, 1e-9);
    for (const double idle : timer.rank(r).idle) EXPECT_GE(idle, 0);
  }
}

TEST(Timer, CriticalPathGoesBackToTheBeginning) {
  Timer timer;
  for (const char* const name : {"binomial", "kchain", "binary", "chain"}) {
    ASSERT_TRUE(time_algorithm(timer, plain(), Collective::reduce, name, 29, 16));
    std::uint32_t step = timer.final_step();
    ASSERT_EQ(timer.step(step).end, timer.end());
    while (timer.cause_of(step) != Timer::kNone) {
      const std::uint32_t before = timer.cause_of(step);
      const double after = timer.step(step).cause == Cause::message
                               ? timer.step(before).end + timer.step(before).latency
                           : timer.step(step).cause == Cause::gap ? timer.step(before).begin + 5
                                                                  : timer.step(before).end;
      ASSERT_NEAR(timer.step(step).begin, after, 1e-9) << name;
      step = before;
    }
    EXPECT_EQ(timer.step(step).begin, 0);
  }
}

TEST(EventQueue, GivesEventsInOrderOfTime) {
  sched::EventQueue queue;
  Random random(3);
  Array<sched::Event> batch;
  double now = 0;
  std::size_t left = 0;
  const auto push = [&] {
    queue.push(now + below(random, 50) * 0.37, static_cast<std::uint32_t>(left++), sched::Event::Kind::wake);
  };
  for (int i = 0; i < 100; ++i) push();
  for (int i = 0; !queue.empty(); ++i) {
    queue.pop(batch);
    ASSERT_FALSE(batch.empty());
    ASSERT_TRUE(i == 0 || batch[0].time() >= now);
    now = batch[0].time();
    for (const sched::Event& event : batch) ASSERT_EQ(event.time(), now);
    left -= batch.size();
    for (int n = below(random, 4); n > 0 && i < 2000; --n) push();
  }
  EXPECT_EQ(left, 0u);
}

}  // namespace
}  // namespace stretto::test
