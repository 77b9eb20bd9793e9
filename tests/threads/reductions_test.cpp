// SPDX-License-Identifier: BSD-3-Clause
// Reductions and all-to-all exchanges on jobs of threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "threads/reduction_calls.hpp"

namespace stretto::test {
namespace {

class Reductions : public testing::TestWithParam<int> {};

TEST_P(Reductions, CombineInRankOrder) { combine_in_rank_order(GetParam(), (GetParam() > 8 ? 15 : 60) * kEffort); }

// Block i -> j holds `length(i, j)` bytes.
int block_length(std::uint64_t seed, int from, int to, bool symmetric) {
  const int a = symmetric ? std::min(from, to) : from;
  const int b = symmetric ? std::max(from, to) : to;
  const std::uint64_t x = (seed * 31 + a) * 37 + b;
  const int lengths[] = {0, 1, 95, 97, 4096, 30'000, static_cast<int>(x % 9000)};
  return lengths[x % std::size(lengths)];
}

TEST_P(Reductions, AlltoallvBringsEveryBlockToItsPlace) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group world(everybody(size));
  const int cases = (size > 8 ? 5 : 25) * kEffort;
  run_job(size, settings, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < cases && !HasFailure(); ++i) {
      const bool in_place = i % 3 == 0;
      std::vector<std::int32_t> sends(size), receives(size), send_at(size), receive_at(size);
      int out = 0;
      int in = 0;
      for (int r = 0; r < size; ++r) {
        sends[r] = block_length(i, rank, r, in_place);
        receives[r] = block_length(i, r, rank, in_place);
        send_at[r] = out;
        receive_at[r] = in;
        out += sends[r] + 3;
        in += receives[r] + 3;
      }
      std::vector<char> from(out);
      std::vector<char> to(in, 'x');
      auto& source = in_place ? to : from;
      auto& places = in_place ? receive_at : send_at;
      for (int r = 0; r < size; ++r) {
        std::fill_n(source.begin() + places[r], sends[r], static_cast<char>(rank * 16 + r + i));
      }
      const Blocks send{from.data(), &kBytes, 0, sends.data(), send_at.data(), false};
      const Blocks receive{to.data(), &kBytes, 0, receives.data(), receive_at.data(), false};
      EXPECT_EQ(engine::alltoall(*comm, Collective::alltoallv, send, receive, in_place, true).status, Status::ok);
      for (int r = 0; r < size; ++r) {
        const auto begin = to.begin() + receive_at[r];
        EXPECT_EQ(std::count(begin, begin + receives[r], static_cast<char>(r * 16 + rank + i)), receives[r]);
        EXPECT_EQ(std::count(begin + receives[r], begin + receives[r] + 3, 'x'), 3) << "gap written";
      }
    }
    engine::comm_free(comm);
  });
}

TEST_P(Reductions, MistakesOfOneRankLeaveNobodyWaiting) {
  if (GetParam() < 2) GTEST_SKIP() << "needs a peer";
  make_mistakes(GetParam(), (GetParam() > 8 ? 10 : 40) * kEffort);
}

// A rank that always fails at once runs ahead of the others by any number of calls.
TEST_P(Reductions, ARankThatGivesUpRunsAhead) {
  const int size = GetParam();
  if (size < 2) GTEST_SKIP() << "needs a peer";
  Group world(everybody(size));
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < 60; ++i) {
      Case c(100u + i, size);
      const bool wrong = rank == size / 2;
      if (!wrong && i % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      (void)Player(*comm, c).attempt(!wrong);
    }
    Player(*comm, Case(7, size)).play();
    engine::comm_free(comm);
  });
}

// What a given-up call left behind does not keep a communicator's memory.
TEST_P(Reductions, CommunicatorsWithGivenUpCallsAreReused) {
  const int size = GetParam();
  if (size < 2) GTEST_SKIP() << "needs a peer";
  Group world(everybody(size));
  Group dup(everybody(size));
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    std::uint64_t highest = 0;
    for (int i = 0; i < (size > 8 ? 5 : 15) * kEffort; ++i) {
      Comm* turn = make_comm(process, dup, rank);
      ASSERT_NE(turn, nullptr);
      const Case c(11u * i, size);
      const Mistake m(c.seed, c, size);
      const bool wrong = rank == m.rank;
      (void)Player(*turn, wrong && m.uneven ? m.as_made(c) : c).attempt(!wrong || m.uneven);
      if (i <= 4) highest = std::max(highest, turn->block_offset);
      EXPECT_LE(turn->block_offset, highest + (256 << 10)) << "blocks are not reused";
      engine::comm_free(turn);
    }
    engine::comm_free(comm);
  });
}

TEST_P(Reductions, BadArgumentsOnOneRankFailEverybodyConcerned) {
  const int size = GetParam();
  if (size < 2) GTEST_SKIP() << "needs a peer";
  Group world(everybody(size));
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    for (const std::size_t count : {std::size_t{3}, std::size_t{5000}}) {
      auto own = contribution(1, rank, count);
      auto out = own;
      const bool good = rank != 1;
      const engine::KernelArgs v{reinterpret_cast<char*>(own.data()), reinterpret_cast<char*>(out.data()), 8 * count,
                                 good};
      const Status peers = good ? Status::peer_failed : Status::invalid;
      EXPECT_EQ(engine::allreduce(*comm, v, kProduct).status, peers);
      const auto reduced = engine::reduce(*comm, v, kProduct, 0).status;
      if (rank == 0) {
        EXPECT_EQ(reduced, Status::peer_failed);
      }
      const auto scanned = engine::scan(*comm, v, kProduct, false).status;
      if (rank > 1) {
        EXPECT_EQ(scanned, Status::peer_failed);
      }
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    }
    engine::comm_free(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Reductions, testing::Values(1, 2, 3, 5, 7, 8, 16));

}  // namespace
}  // namespace stretto::test
