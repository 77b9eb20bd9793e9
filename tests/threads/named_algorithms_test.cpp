// SPDX-License-Identifier: BSD-3-Clause
// Rules that name algorithms over shared memory: the engine obeys, and each algorithm serves calls
// of any length among any number of ranks.
#include <gtest/gtest.h>

#include <atomic>

#include "threads/reduction_calls.hpp"

namespace stretto::test {
namespace {

class NamedAlgorithms : public testing::TestWithParam<int> {};

// Each algorithm over shared memory serves every length, however short the lanes are.
constexpr const char* kNamed[] = {
    "reduce: shm:root\nallreduce: shm:flat\nscan: shm:flat\nexscan: shm:flat\n",
    "reduce: shm:slices\nallreduce: shm:slices\nscan: shm:chain\nexscan: shm:chain\n",
    "reduce bytes=0-800: shm:slices\nallreduce: shm:slices\nallreduce bytes=4K-: shm:flat\nscan bytes=801-: shm:flat\n",
};

TEST_P(NamedAlgorithms, CombineInRankOrder) {
  for (const char* const text : kNamed) combine_in_rank_order(GetParam(), (GetParam() > 8 ? 5 : 30) * kEffort, text);
}

TEST_P(NamedAlgorithms, BarriersWaitForAll) {
  const int size = GetParam();
  for (const char* const text : {"barrier: shm:flat\n", "barrier: shm:dissemination\n"}) {
    std::atomic<int> entered{0};
    Group world(everybody(size));
    run_job(size, {}, [&](int rank, engine::Process& process) {
      Comm* comm = make_comm(process, world, rank);
      obey(*comm, text);
      for (int i = 1; i <= 20; ++i) {
        if ((i + rank) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++entered;
        EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
        EXPECT_GE(entered.load(), i * size);
      }
      engine::comm_free(comm);
    });
  }
}

// Records say which way the data go. So rules that differ show that the engine obeys them.
TEST_P(NamedAlgorithms, RanksThatObeyDifferentRulesNotice) {
  const int size = GetParam();
  if (size < 2) GTEST_SKIP() << "needs a peer";
  Group world(everybody(size));
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    auto own = contribution(1, rank, 3);
    auto out = own;
    const engine::KernelArgs v{reinterpret_cast<char*>(own.data()), reinterpret_cast<char*>(out.data()), 24};
    obey(*comm, rank == 0 ? "allreduce bytes=0-23: shm:slices\n" : "");
    EXPECT_EQ(engine::allreduce(*comm, v, kProduct).status, Status::ok);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    obey(*comm, rank == 0 ? "allreduce bytes=24: shm:slices\n" : "");
    EXPECT_EQ(engine::allreduce(*comm, v, kProduct).status, Status::other_length);
    engine::comm_free(comm);
  });
}

TEST_P(NamedAlgorithms, MistakesOfOneRankLeaveNobodyWaiting) {
  if (GetParam() < 2) GTEST_SKIP() << "needs a peer";
  for (const char* const text : kNamed) make_mistakes(GetParam(), (GetParam() > 8 ? 3 : 20) * kEffort, text);
}

INSTANTIATE_TEST_SUITE_P(Ranks, NamedAlgorithms, testing::Values(1, 2, 3, 5, 8, 16));

}  // namespace
}  // namespace stretto::test
