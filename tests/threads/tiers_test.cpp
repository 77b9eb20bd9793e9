// SPDX-License-Identifier: BSD-3-Clause
// Calls by tiers, in jobs of few and many ranks and on fabricated placements.
#include <atomic>

#include "threads/moving_calls.hpp"
#include "threads/reduction_calls.hpp"

namespace stretto::test {
namespace {

struct Where {
  int size;
  int tiers;  // of kFabricatedTiers
};

class InTiers : public testing::TestWithParam<Where> {
 protected:
  InTiers() { g_tiers = &kFabricatedTiers[GetParam().tiers]; }
  ~InTiers() override { g_tiers = nullptr; }
  InTiers(const InTiers&) = delete;
  InTiers& operator=(const InTiers&) = delete;

  [[nodiscard]] static int size() { return GetParam().size; }
  // Many threads on few processors take turns.
  [[nodiscard]] static int cases(int few) { return size() > 8 ? few / 8 + 1 : few; }
};

constexpr const char* kByTiers =
    "reduce: shm:tiers\nallreduce: shm:tiers\nreduce_scatter: shm:tiers\nscan: shm:tiers\nexscan: shm:tiers\n"
    "bcast: shm:tiers\nbarrier: shm:tiers\n";

TEST_P(InTiers, ReductionsAreThoseOfAllRanks) { combine_in_rank_order(size(), cases(12) * kEffort); }

TEST_P(InTiers, ReductionsOfAnyLengthAre) { combine_in_rank_order(size(), cases(8) * kEffort, kByTiers); }

constexpr const char* kByRails = "allreduce: shm:rails\nreduce: shm:rails\nreduce_scatter: shm:rails\n";

// Of 7 ranks one would be alone, so all are one group.
TEST_P(InTiers, HaveRailsOfThreeOrTwoRanks) {
  if (GetParam().tiers != 4) GTEST_SKIP() << "other groups";
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    EXPECT_EQ(engine::comm_members(*comm).rails, size() == 7 ? 7 : size() % 3 == 0 ? 3 : 2);
    engine::comm_free(comm);
  });
}

TEST_P(InTiers, ReductionsByRailsAre) { combine_in_rank_order(size(), cases(12) * kEffort, kByRails); }

TEST_P(InTiers, MistakesByRailsLeaveNobodyWaiting) { make_mistakes(size(), cases(4) * kEffort, kByRails); }

TEST_P(InTiers, MistakesOfOneRankLeaveNobodyWaiting) { make_mistakes(size(), cases(6) * kEffort); }

TEST_P(InTiers, NorDoTheyByAnyLength) { make_mistakes(size(), cases(4) * kEffort, kByTiers); }

TEST_P(InTiers, DataArriveAsTheyWereSent) {
  engine::Settings settings;
  settings.slot_bytes = 4096;
  Group world(everybody(size()));
  const struct {
    std::size_t slots;
    SingleCopyChoice single_copy;
    StreamingChoice streaming;
    const char* rules;
  } ways[] = {{4, SingleCopyChoice::off, StreamingChoice::off, ""},
              {4, SingleCopyChoice::off, StreamingChoice::off, kByTiers},
              {4, SingleCopyChoice::always, StreamingChoice::automatic, ""},
              {1, SingleCopyChoice::off, StreamingChoice::always, kByTiers}};
  for (const auto& way : ways) {
    settings.slots = way.slots;
    settings.single_copy = way.single_copy;
    settings.streaming = way.streaming;
    const std::size_t ring = settings.slots * settings.slot_bytes;
    run_job(size(), settings, [&](int rank, engine::Process& process) {
      engine::Comm* comm = make_comm(process, world, rank);
      ASSERT_NE(comm, nullptr);
      ASSERT_TRUE(engine::comm_members(*comm).tiers);
      obey(*comm, way.rules);
      for (int i = 0; i < cases(8) * kEffort && !HasFailure(); ++i)
        moving::Player(*comm, 1000u * size() + i, ring).play();
      engine::comm_free(comm);
    });
  }
}

TEST_P(InTiers, BarriersWaitForAll) {
  std::atomic<int> entered{0};
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    obey(*comm, kByTiers);
    for (int i = 1; i <= cases(20); ++i) {
      if ((i + rank) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      ++entered;
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      EXPECT_GE(entered.load(), i * size());
    }
    engine::comm_free(comm);
  });
}

TEST_P(InTiers, CommunicatorsComeAndGo) {
  Group world(everybody(size()));
  std::vector<int> backwards(size());
  for (int r = 0; r < size(); ++r) backwards[r] = size() - 1 - r;
  Group reversed(backwards);
  run_job(size(), few_slots(), [&](int rank, engine::Process& process) {
    engine::Comm* kept = make_comm(process, world, rank);
    std::uint64_t highest = 0;
    for (int round = 0; round < cases(4) * kEffort && !HasFailure(); ++round) {
      engine::Comm* turned = make_comm(process, reversed, reversed.rank_of(rank));
      ASSERT_TRUE(kept && turned);
      for (int i = 0; i < 3; ++i) {
        moving::Player(*turned, 77u * round + i, 8192).play();
        moving::Player(*kept, 55u * round + i, 8192).play();
        Player(*turned, Case(33u * round + i, size())).play();
      }
      if (round <= 4) highest = std::max(highest, turned->block_offset);
      EXPECT_LE(turned->block_offset, highest + (256 << 10)) << "blocks are not reused";
      engine::comm_free(turned);
    }
    engine::comm_free(kept);
  });
}

// The root sends less than receivers declared: it goes another way than they expect.
TEST_P(InTiers, TheRootsLengthDecidesABcastsWay) {
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < cases(4) && !HasFailure(); ++i) {
      const int root = i % size();
      std::vector<char> buffer(rank == root ? 8 : 8000, static_cast<char>(rank == root ? i : -1));
      EXPECT_EQ(engine::bcast(*comm, {buffer.data(), buffer.size(), &kBytes}, root, true).status, Status::ok);
      EXPECT_EQ(std::count(buffer.begin(), buffer.begin() + 8, static_cast<char>(i)), 8);
      // This one has one receiver that declares too little.
      std::vector<char> more(rank == (root + 1) % size() ? 100 : 9000, static_cast<char>(rank == root ? i : -1));
      const Status status = engine::bcast(*comm, {more.data(), more.size(), &kBytes}, root, true).status;
      EXPECT_EQ(status, more.size() == 100 ? Status::truncated : Status::ok);
      EXPECT_EQ(std::count(more.begin(), more.end(), static_cast<char>(i)), std::ssize(more));
    }
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

// A rank that cannot read its own arguments still hands on.
TEST_P(InTiers, BadArgumentsInABcastReachThoseConcerned) {
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    std::vector<char> buffer(5000, static_cast<char>(rank));
    const Region mine{buffer.data(), buffer.size(), &kBytes};
    const int root = size() / 2;
    EXPECT_EQ(engine::bcast(*comm, mine, root, rank != root).status, rank == root ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::bcast(*comm, mine, root, rank != 0).status, Status::ok);
    if (rank != 0) EXPECT_EQ(std::count(buffer.begin(), buffer.end(), static_cast<char>(root)), 5000);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

// Ranks that go different ways notice, whichever way most go.
TEST_P(InTiers, RanksThatObeyDifferentRulesNotice) {
  Group world(everybody(size()));
  run_job(size(), {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < cases(3); ++i) {
      const bool odd = (rank == i % size()) != (i % 2 == 0);
      auto own = contribution(1, rank, 3);
      auto out = own;
      const engine::KernelArgs v{reinterpret_cast<char*>(own.data()), reinterpret_cast<char*>(out.data()), 24};
      obey(*comm, odd ? "allreduce: shm:slices\n" : "");
      const Status status = engine::allreduce(*comm, v, kSum).status;
      EXPECT_TRUE(status == Status::other_length || status == Status::peer_failed) << static_cast<int>(status);
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    }
    engine::comm_free(comm);
  });
}

std::vector<Where> few_ranks() {
  std::vector<Where> all;
  for (const int size : {3, 5, 7, 8}) {
    for (int tiers = 0; tiers < std::ssize(kFabricatedTiers); ++tiers) all.push_back({size, tiers});
  }
  for (const Where& more : {Where{17, 0}, {17, 3}, {17, 4}}) all.push_back(more);
  return all;
}
std::string name_of(const testing::TestParamInfo<Where>& where) {
  return std::to_string(where.param.size) + "by" + std::to_string(where.param.tiers);
}
INSTANTIATE_TEST_SUITE_P(Ranks, InTiers, testing::ValuesIn(few_ranks()), name_of);

// Under sanitizers these take minutes: --gtest_also_run_disabled_tests runs them.
#if defined(__SANITIZE_THREAD__)
INSTANTIATE_TEST_SUITE_P(DISABLED_ManyRanks, InTiers, testing::Values(Where{33, 1}, Where{64, 2}), name_of);
#elif defined(__SANITIZE_ADDRESS__)
INSTANTIATE_TEST_SUITE_P(ManyRanks, InTiers, testing::Values(Where{33, 1}), name_of);
INSTANTIATE_TEST_SUITE_P(DISABLED_ManyRanks, InTiers, testing::Values(Where{64, 2}), name_of);
#else
INSTANTIATE_TEST_SUITE_P(ManyRanks, InTiers, testing::Values(Where{33, 1}, Where{64, 2}), name_of);
#endif

}  // namespace
}  // namespace stretto::test
