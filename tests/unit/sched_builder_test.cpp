// SPDX-License-Identifier: BSD-3-Clause
// The builder: which steps depend on which, and how messages are numbered.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "coll/algorithm.hpp"
#include "sched/builder.hpp"

namespace stretto::test {
namespace {

using sched::Buffer;
using sched::Builder;
using sched::kNoStep;
using sched::Schedule;
using sched::Side;
using sched::Slice;
using Set = std::set<std::uint32_t>;

Set dependencies(const Schedule& s, std::uint32_t step) {
  const auto all = s.dependencies_of(s.steps[step]);
  return {all.begin(), all.end()};
}
constexpr Slice at(std::uint64_t begin, std::uint64_t end) { return {Buffer::receive, begin, end - begin}; }

TEST(Builder, DependenciesFollowFromOverlap) {
  Builder b;
  b.recv(1, at(0, 10));   // 0
  b.recv(1, at(10, 20));  // 1
  b.send(2, at(5, 15));   // 2 reads both
  b.send(2, at(0, 5));    // 3 reads the first
  b.recv(3, at(0, 6));    // 4 overwrites what 2 and 3 read
  b.send(2, at(0, 20));   // 5 reads 0 (the rest of it), 1 and 4
  b.recv(3, at(40, 50));  // 6 touches nothing that the others use
  const Schedule s = b.finish();
  ASSERT_TRUE(s.complete);
  EXPECT_EQ(dependencies(s, 1), Set{});
  EXPECT_EQ(dependencies(s, 2), (Set{0, 1}));
  EXPECT_EQ(dependencies(s, 3), (Set{0}));
  EXPECT_EQ(dependencies(s, 4), (Set{2, 3}));
  EXPECT_EQ(dependencies(s, 5), (Set{0, 1, 4}));
  EXPECT_EQ(dependencies(s, 6), Set{});
}

TEST(Builder, CombinationsInPlaceFollowEachOther) {
  Builder b;
  const Slice sum = b.scratch(8);
  b.recv_reduce(1, at(0, 8), sum, Side::right);  // 0
  b.recv_reduce(2, sum, sum, Side::right);       // 1
  b.recv_reduce(3, sum, sum, Side::right);       // 2
  const Schedule s = b.finish();
  EXPECT_EQ(dependencies(s, 1), (Set{0}));
  EXPECT_EQ(dependencies(s, 2), (Set{1}));
  EXPECT_EQ(s.scratch_units, 8u);
}

TEST(Builder, NothingToMoveIsNoStepAndTakesItsConditionsAlong) {
  Builder b;
  const auto first = b.signal(1);
  b.after(first);
  EXPECT_EQ(b.send(1, at(3, 3)), kNoStep);
  EXPECT_EQ(b.copy(at(0, 4), at(0, 4)), kNoStep);
  b.await(1);
  const Schedule s = b.finish();
  ASSERT_EQ(s.steps.size(), 2u);
  EXPECT_EQ(dependencies(s, 1), Set{});
}

TEST(Builder, FencesSeparatePhases) {
  Builder b;
  b.fence();
  b.signal(1);  // 0
  b.signal(2);  // 1
  b.fence();
  b.fence();
  b.await(1);  // 2
  b.await(2);  // 3
  b.fence();
  b.signal(3);  // 4
  const Schedule s = b.finish();
  EXPECT_EQ(dependencies(s, 1), Set{});
  EXPECT_EQ(dependencies(s, 2), (Set{0, 1}));
  EXPECT_EQ(dependencies(s, 3), (Set{0, 1}));
  EXPECT_EQ(dependencies(s, 4), (Set{2, 3}));
}

TEST(Builder, MessagesAreNumberedForEachPairAndDirection) {
  Builder b;
  for (int round = 0; round < 3; ++round) {
    for (int peer = 0; peer < 100; ++peer) {
      b.signal(peer);
      if (peer % 2 == 0) b.await(peer);
    }
  }
  for (int again = 0; again < 2; ++again) {
    const Schedule s = b.finish();
    std::vector<std::uint32_t> sent(100), received(100);
    for (const auto& step : s.steps) EXPECT_EQ(step.message_index, (step.receives() ? received : sent)[step.peer]++);
    b.signal(7);  // a builder that is used again counts from 0
  }
}

// A chain of dependencies orders every pair of steps that conflict. No step depends on one with
// which it does not conflict.
TEST(Builder, OrdersExactlyWhatConflicts) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    Builder b;
    struct Access {
      Slice read, write;
    };
    std::vector<Access> accesses;
    const auto slice = [&](Buffer buffer, std::uint64_t length) { return Slice{buffer, random() % 30, length}; };
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t length = 1 + random() % 8;
      const Slice from = slice(random() % 2 ? Buffer::receive : Buffer::scratch, length);
      const Slice to = slice(from.buffer == Buffer::receive ? Buffer::scratch : Buffer::receive, length);
      switch (random() % 3) {
        case 0: b.send(1, from), accesses.push_back({from, {}}); break;
        case 1: b.recv(1, to), accesses.push_back({{}, to}); break;
        default: b.copy(from, to), accesses.push_back({from, to}); break;
      }
    }
    const Schedule s = b.finish();
    ASSERT_EQ(s.steps.size(), accesses.size());
    const auto meet = [](const Slice& x, const Slice& y) {
      return x.length && y.length && x.buffer == y.buffer && x.offset < y.end() && y.offset < x.end();
    };
    std::vector<Set> before(accesses.size());
    for (std::uint32_t i = 0; i < accesses.size(); ++i) {
      for (const auto on : dependencies(s, i)) {
        before[i].insert(on);
        before[i].insert(before[on].begin(), before[on].end());
      }
      for (std::uint32_t j = 0; j < i; ++j) {
        const Access& x = accesses[i];
        const Access& y = accesses[j];
        const bool conflict = meet(x.read, y.write) || meet(x.write, y.read) || meet(x.write, y.write);
        EXPECT_TRUE(!conflict || before[i].contains(j)) << round << ": " << i << " after " << j;
        EXPECT_TRUE(conflict || !dependencies(s, i).contains(j)) << round << ": " << i << " on " << j;
      }
    }
  }
}

// The cost of a step does not grow with the number of members. That holds for every order in which
// an algorithm goes through its buffers.
TEST(Builder, BuildsInLinearTime) {
  const auto work_per_step = [](const coll::Algorithm& algorithm, int size) {
    coll::Problem problem;
    problem.collective = algorithm.collective;
    problem.size = size;
    problem.rank = coll::has_root(algorithm.collective) ? 0 : 1;
    problem.commutative = true;
    problem.count = algorithm.collective == Collective::allreduce ? 8 * static_cast<std::uint64_t>(size) : 8;
    Builder builder;
    const Schedule schedule = coll::build(builder, algorithm, problem, {});
    EXPECT_TRUE(schedule.complete);
    return static_cast<double>(builder.work()) / static_cast<double>(schedule.steps.size());
  };
  constexpr std::pair<Collective, const char*> kNames[] = {
      {Collective::gather, "flat"},     {Collective::scatter, "flat"},        {Collective::allgather, "ring"},
      {Collective::allreduce, "ring"},  {Collective::reduce_scatter, "ring"}, {Collective::reduce_scatter, "pairwise"},
      {Collective::alltoall, "linear"}, {Collective::alltoall, "pairwise"},   {Collective::alltoall, "bruck"}};
  for (const auto& [collective, name] : kNames) {
    const coll::Algorithm* const algorithm = coll::find_algorithm(collective, name);
    ASSERT_NE(algorithm, nullptr) << name;
    const double few = work_per_step(*algorithm, 512), many = work_per_step(*algorithm, 16'384);
    EXPECT_LT(many, 1.2 * few + 1) << kCollectiveNames[static_cast<int>(collective)] << ' ' << name << ": " << few
                                   << ", " << many;
    EXPECT_LT(many, 24) << kCollectiveNames[static_cast<int>(collective)] << ' ' << name;
  }
}

// Compared with a list of which step has touched what, unit by unit.
TEST(Builder, RandomSlicesFollowAsUnitsDo) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    constexpr std::uint32_t kUnits = 300;
    Builder b;
    std::vector<std::uint32_t> writer(kUnits, kNoStep);
    std::vector<Set> readers(kUnits);
    std::vector<Set> expected;
    for (std::uint32_t step = 0; step < 300; ++step) {
      const std::uint32_t begin = random() % kUnits,
                          end = begin + 1 + random() % std::min<std::uint32_t>(kUnits - begin, 40);
      const bool reads = random() % 2 == 0;
      Set after;
      for (std::uint32_t unit = begin; unit < end; ++unit) {
        if ((reads || readers[unit].empty()) && writer[unit] != kNoStep) after.insert(writer[unit]);
        if (!reads) after.insert(readers[unit].begin(), readers[unit].end());
        if (reads)
          readers[unit].insert(step);
        else
          writer[unit] = step, readers[unit].clear();
      }
      expected.push_back(after);
      if (reads)
        b.send(1, at(begin, end));
      else
        b.recv(1, at(begin, end));
    }
    const Schedule s = b.finish();
    ASSERT_TRUE(s.complete);
    for (std::uint32_t step = 0; step < expected.size(); ++step)
      ASSERT_EQ(dependencies(s, step), expected[step]) << round << ", step " << step;
  }
}

}  // namespace
}  // namespace stretto::test
