// SPDX-License-Identifier: BSD-3-Clause
// Calls by schedule that all ranks draw alike, one after the other, and what comes of them.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/scheduler.hpp"
#include "reduce/reduce.hpp"

namespace stretto::test {

inline constexpr std::int64_t kFactor = 1'000'003;

inline std::int64_t value(int call, int rank, std::size_t i) {
  return call * kFactor + rank * 1009 + static_cast<std::int64_t>(i);
}
inline std::int64_t sum(int call, int ranks, std::size_t i) {
  std::int64_t all = 0;
  for (int r = 0; r < ranks; ++r) all += value(call, r, i);
  return all;
}

inline void add(void*, char* out, const char* left, const char* right, std::uint64_t units) {
  reduce::kernel3(reduce::Op::sum, reduce::Type::i64)(out, left, right, units);
}

// The same, as the kernel of a call of one node.
inline const engine::KernelOp kAdd = {reduce::kernel3(reduce::Op::sum, reduce::Type::i64), sizeof(std::int64_t), 1};

// Every call goes by schedule.
inline select::Selector always(int ranks) {
  static const select::Rules none;
  select::Selector selector;
  EXPECT_TRUE(selector.start({.ranks = ranks, .forced = kNativeCollectives}, none));
  return selector;
}

// What all ranks draw alike.
struct Draw {
  Collective collective;
  int root;
  std::size_t count;

  Draw(int call, int ranks) {
    std::mt19937_64 random(static_cast<std::uint64_t>(call));
    constexpr Collective kKinds[] = {Collective::bcast, Collective::reduce, Collective::allreduce, Collective::barrier};
    constexpr std::size_t kCounts[] = {0, 1, 7, 100, 300, 1000, 40'000};
    collective = kKinds[random() % std::size(kKinds)];
    root = static_cast<int>(random() % static_cast<unsigned>(ranks));
    count = kCounts[random() % std::size(kCounts)];
  }
};

inline void play(engine::Scheduler& scheduler, int rank, int ranks, int calls) {
  for (int call = 0; call < calls; ++call) {
    const Draw draw(call, ranks);
    const bool takes =
        draw.collective == Collective::allreduce || (draw.collective == Collective::reduce && rank == draw.root);
    const bool gives = draw.collective != Collective::bcast || rank == draw.root;
    std::vector<std::int64_t> send(draw.count), receive(draw.count, -1);
    for (std::size_t i = 0; i < draw.count; ++i) send[i] = value(call, rank, i);
    if (draw.collective == Collective::bcast && gives) receive = send;
    engine::Scheduled scheduled;
    scheduled.problem = scheduler.problem(draw.collective, draw.collective == Collective::allreduce ? 0 : draw.root);
    scheduled.problem.count = draw.count;
    scheduled.problem.commutative = true;
    scheduled.unit_bytes = sizeof(std::int64_t);
    scheduled.send = reinterpret_cast<const char*>(send.data());
    scheduled.receive = reinterpret_cast<char*>(receive.data());
    scheduled.combination = {nullptr, add};
    scheduled.kernel = &kAdd;
    const engine::Outcome outcome = scheduler.run(scheduled);
    ASSERT_EQ(outcome.status, Status::ok);
    ASSERT_EQ(outcome.path, Path::schedule);
    for (std::size_t i = 0; i < draw.count; ++i) {
      const std::int64_t expected = draw.collective == Collective::bcast ? value(call, draw.root, i)
                                    : takes                              ? sum(call, ranks, i)
                                                                         : -1;
      if (draw.collective != Collective::barrier) {
        ASSERT_EQ(receive[i], expected) << "call " << call << ", element " << i;
      }
    }
  }
}

}  // namespace stretto::test
