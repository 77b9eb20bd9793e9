// SPDX-License-Identifier: BSD-3-Clause
// Random calls on jobs of 1 to 16 ranks as threads.
#include "threads/moving_calls.hpp"

namespace stretto::test {
namespace {

using engine::Comm;
using moving::Player;

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, AgreeWithASerialOracle) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slot_bytes = 4096;
  Group world(everybody(size));
  const int cases = (size > 8 ? 8 : size > 5 ? 20 : 60) * kEffort;
  const struct {
    std::size_t slots;
    SingleCopyChoice single_copy;
    StreamingChoice streaming;
  } ways[] = {{4, SingleCopyChoice::off, StreamingChoice::off},
              {4, SingleCopyChoice::always, StreamingChoice::automatic},
              {1, SingleCopyChoice::off, StreamingChoice::always}};
  for (const auto& way : ways) {
    settings.slots = way.slots;
    settings.single_copy = way.single_copy;
    settings.streaming = way.streaming;
    const std::size_t ring = settings.slots * settings.slot_bytes;
    run_job(size, settings, [&](int rank, engine::Process& process) {
      Comm* comm = make_comm(process, world, rank);
      ASSERT_NE(comm, nullptr);
      for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) Player(*comm, 1000u * size + i, ring).play();
      engine::comm_free(comm);
    });
  }
}

// Communicators come and go without synchronising. Several live at once, over different members in
// different orders.
TEST_P(Collectives, OnCommunicatorsMadeAndFreedInALoop) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group world(everybody(size));
  std::vector<int> backwards(size);
  for (int r = 0; r < size; ++r) backwards[r] = size - 1 - r;
  Group reversed(backwards);
  std::vector<int> lower;
  std::vector<int> upper;
  for (int r = 0; r < size; ++r) (r % 2 == 0 ? lower : upper).push_back(r);
  Group evens(lower);
  Group odds(upper);
  run_job(size, settings, [&](int rank, engine::Process& process) {
    Comm* kept = make_comm(process, world, rank);
    const int rounds = (size > 8 ? 3 : size > 4 ? 5 : 10) * kEffort;
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      Comm* turned = make_comm(process, reversed, reversed.rank_of(rank));
      Group& half = rank % 2 == 0 ? evens : odds;
      Comm* part = make_comm(process, half, half.rank_of(rank));
      ASSERT_TRUE(kept && turned && part);
      for (int i = 0; i < 4; ++i) {
        Player(*turned, 77u * round + i, 8192).play();
        Player(*part, 99u * round + i, 8192).play();
        Player(*kept, 55u * round + i, 8192).play();
      }
      engine::comm_free(turned);
      engine::comm_free(part);
    }
    engine::comm_free(kept);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 5, 7, 8, 16));

TEST(Errors, TruncationIsSufferedByTheShortRankAlone) {
  Group world(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    for (std::uint64_t length : {std::uint64_t{50}, std::uint64_t{100'000}}) {
      std::vector<char> buffer(length + 1, static_cast<char>(rank == 0 ? 7 : 0));
      const std::uint64_t mine = rank == 2 ? length - 1 : length;
      const auto out = engine::bcast(*comm, {buffer.data(), mine, &kBytes}, 0, true);
      EXPECT_EQ(out.status, rank == 2 ? Status::truncated : Status::ok);
      EXPECT_EQ(buffer[mine - 1], 7);
      EXPECT_EQ(buffer[length], rank == 0 ? 7 : 0);
      EXPECT_EQ(buffer[length - 1], rank == 2 ? 0 : 7);
    }
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

TEST(Errors, BadArgumentsOnOneRankFailItsPeersAndTheNextCallIsRight) {
  Group world(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    std::vector<char> buffer(200, static_cast<char>(rank));
    const Region mine{buffer.data(), 200, &kBytes};
    // The root's fault reaches all ranks. Another rank's fault stays with it.
    EXPECT_EQ(engine::bcast(*comm, mine, 1, rank != 1).status, rank == 1 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::bcast(*comm, mine, 1, rank != 2).status, Status::ok);
    std::vector<char> all(600);
    const Blocks blocks{all.data(), &kBytes, 200};
    const auto gathered = engine::gather(*comm, Collective::gather, mine, blocks, 0, false, rank != 2).status;
    EXPECT_EQ(gathered, rank == 0 ? Status::peer_failed : Status::ok);
    const auto shared = engine::allgather(*comm, Collective::allgather, mine, blocks, false, rank != 2).status;
    EXPECT_EQ(shared, rank == 2 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::scatter(*comm, Collective::scatter, blocks, mine, 2, false, rank != 2).status,
              rank == 2 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

// "Thread 1: Bcast X; thread 2: Bcast Y" against "Bcast Y, then X" is correct MPI. Data of X in
// slots must not hold up Y.
TEST(Threads, CallsOfSeveralThreadsDoNotWaitForEachOthersSlots) {
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group x(everybody(2));
  Group y(everybody(2));
  run_job(2, settings, [&](int rank, engine::Process& process) {
    Comm* comm_x = make_comm(process, x, rank);
    Comm* comm_y = make_comm(process, y, rank);
    std::vector<char> buffer(8192, static_cast<char>(rank));
    std::vector<char> other(64 << 10, static_cast<char>(rank));
    const Region small{buffer.data(), buffer.size(), &kBytes};
    const Region large{other.data(), other.size(), &kBytes};
    for (int i = 0; i < 20 * kEffort; ++i) {
      if (rank == 0) {
        std::jthread([&] { EXPECT_EQ(engine::bcast(*comm_x, small, 0, true).status, Status::ok); }).join();
        std::jthread([&] { EXPECT_EQ(engine::bcast(*comm_y, large, 0, true).status, Status::ok); }).join();
      } else {
        EXPECT_EQ(engine::bcast(*comm_y, large, 0, true).status, Status::ok);
        EXPECT_EQ(engine::bcast(*comm_x, small, 0, true).status, Status::ok);
      }
    }
    engine::comm_free(comm_x);
    engine::comm_free(comm_y);
  });
}

}  // namespace
}  // namespace stretto::test
