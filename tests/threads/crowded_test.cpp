// SPDX-License-Identifier: BSD-3-Clause
// More ranks than processors: short calls go by rank 0, and few ranks combine long vectors. The
// rules ask for that, so that it is so on machines of any size.
#include <gtest/gtest.h>

#include <atomic>

#include "engine/process.hpp"
#include "threads/reduction_calls.hpp"

namespace stretto::test {
namespace {

class Crowded : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int size() { return GetParam(); }
  // Threads on two processors take turns.
  [[nodiscard]] static int cases(int of_few) { return size() > 16 ? 3 : of_few * kEffort; }
};

constexpr const char* kByRoot = "allreduce: shm:root\nreduce: shm:root\nreduce_scatter: shm:root\n";

TEST_P(Crowded, CombinesInRankOrder) {
  combine_in_rank_order(size(), cases(10));
  combine_in_rank_order(size(), cases(10), kByRoot);
}

TEST_P(Crowded, MistakesOfOneRankLeaveNobodyWaiting) { make_mistakes(size(), cases(10)); }

TEST_P(Crowded, BarriersWaitForAll) {
  std::atomic<int> entered{0};
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    obey(*comm, "barrier: shm:root\n");
    for (int i = 1; i <= 10; ++i) {
      if ((i + rank) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      ++entered;
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      EXPECT_GE(entered.load(), i * size());
    }
    engine::comm_free(comm);
  });
}

// One that goes by rank 0, one to all: nobody waits for ever.
TEST_P(Crowded, RanksThatGoOtherWaysNotice) {
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    auto own = contribution(1, rank, 3);
    auto out = own;
    const engine::KernelArgs v{reinterpret_cast<char*>(own.data()), reinterpret_cast<char*>(out.data()), 24};
    obey(*comm, rank == size() - 1 ? "allreduce: shm:flat\n" : kByRoot);
    EXPECT_EQ(engine::allreduce(*comm, v, kProduct).status, Status::other_length);
    engine::comm_free(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Crowded, testing::Values(3, 5, 7, 8, 9, 16, 17));
// Runs with --long only.
INSTANTIATE_TEST_SUITE_P(DISABLED_ManyRanks, Crowded, testing::Values(64));

// All ranks find the same: whether there are processors for them.
TEST(CrowdedNode, DuplicatesShareTheListsOfTheirGroups) {
  constexpr int kRanks = 12, kComms = 3;
  Group world(everybody(kRanks));
  engine::Settings settings;
  settings.tiers_from_ranks = 2;
  run_job(kRanks, settings, [&](int rank, engine::Process& process) {
    Comm* comms[kComms];
    for (Comm*& comm : comms) comm = make_comm(process, world, rank);
    for (Comm* comm : comms) {
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      EXPECT_EQ(&comm->tier_choice.placed->groups, &comms[0]->tier_choice.placed->groups);
      EXPECT_EQ(comm->tiers->of, comms[0]->tiers->of);
    }
    EXPECT_EQ(comms[0]->tiers->of->users, unsigned{kComms});
    for (Comm* comm : comms) engine::comm_free(comm);
  });
}

}  // namespace
}  // namespace stretto::test
