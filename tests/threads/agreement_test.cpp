// SPDX-License-Identifier: BSD-3-Clause
// Communicators: made together, freed apart, leaving nothing.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <numeric>

#include "engine/process.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

TEST(Agreement, NativeCollectivesAreThoseThatAllRanksWant) {
  Group world(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank, nullptr, rank == 1 ? 0b0110u : 0b1010u);
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(engine::comm_collectives(*comm), 0b0010u);
    engine::comm_free(comm);
  });
}

TEST(Agreement, OneRankWhoseLanesDoNotFitDeclinesOnAllAndIsNamed) {
  Group world(everybody(3));
  std::vector<engine::Process*> processes(3);
  engine::Settings settings;
  for (int r = 0; r < 3; ++r) {
    settings.segment_bytes = r == 2 ? 64 << 10 : 64 << 20;
    processes[r] = engine::process_create(settings, {});
  }
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 3; ++r) {
      ranks.emplace_back([&, r] {
        engine::Decline why;
        EXPECT_EQ(make_comm(*processes[r], world, r, &why), nullptr);
        EXPECT_EQ(why.rank, 2);
        EXPECT_STREQ(why.reason,
                     "the lanes (of STRETTO_SLOTS x STRETTO_SLOT_BYTES each) do not fit into STRETTO_SEGMENT_BYTES");
      });
    }
  }
  for (auto* process : processes) engine::process_destroy(process);
}

TEST(Agreement, ManyCommunicatorsInTurnUseTheSameMemory) {
  Group world(everybody(2));
  Group dup(everybody(2));
  run_job(2, {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    std::uint64_t highest = 0;
    for (int i = 0; i < 500 * kEffort; ++i) {
      engine::Comm* turn = make_comm(process, dup, rank);
      ASSERT_NE(turn, nullptr);
      EXPECT_EQ(engine::barrier(*turn).status, Status::ok);
      if (i == 10) highest = turn->block_offset;
      if (i > 10) {
        EXPECT_LE(turn->block_offset, highest + (64 << 10)) << "blocks are not reused";
      }
      engine::comm_free(turn);
    }
    engine::comm_free(comm);
  });
}

// Peers have mapped only the beginning of a segment. Each communicator's lines lie further on, and
// the older ones stay in use.
TEST(Agreement, ManyCommunicatorsAtOnceMakeSegmentsGrow) {
  constexpr int kRanks = 3, kMost = 200;
  Group world(everybody(kRanks));
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    std::vector<engine::Comm*> comms;
    const auto call_all = [&] {
      for (std::size_t i = 0; i < comms.size(); ++i) {
        std::vector<char> buffer(5000, static_cast<char>(rank == 1 ? i : -1));
        ASSERT_EQ(engine::bcast(*comms[i], {buffer.data(), buffer.size(), &kBytes}, 1, true).status, Status::ok);
        EXPECT_EQ(buffer.front(), static_cast<char>(i));
        EXPECT_EQ(buffer.back(), static_cast<char>(i));
      }
    };
    comms.push_back(make_comm(process, world, rank));
    const std::size_t first = process.segment.extent();
    while (process.segment.extent() == first && comms.size() < kMost) {
      {
        const Locked locked(process.lock);
        (void)process.segment.place_allocate(std::size_t{512} << 10);  // peers map the first 32 MiB at once
      }
      comms.push_back(make_comm(process, world, rank));
      ASSERT_NE(comms.back(), nullptr);
      if (comms.size() % 40 == 1) call_all();
    }
    EXPECT_GT(process.segment.extent(), first);
    EXPECT_LE(process.attachments.count, std::size_t{kRanks - 1} * 4);
    call_all();
    for (engine::Comm* comm : comms) engine::comm_free(comm);
  });
}

// A root may leave a communicator while its data still wait for a slow reader. The data must
// survive all reuse.
TEST(Agreement, FreedCommunicatorsDataStayUntilRead) {
  Group world(everybody(2));
  Group dup(everybody(2));
  Group gate(everybody(2));
  run_job(2, {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < 50 * kEffort; ++i) {
      engine::Comm* brief = make_comm(process, dup, rank);
      int ignored[2];
      for (const std::size_t length : {40, 9000}) {
        std::vector<char> buffer(length, static_cast<char>(rank == 0 ? i : -1));
        // Until the root has left.
        if (rank == 1) gate.allgather(rank, &rank, ignored, sizeof rank);
        EXPECT_EQ(engine::bcast(*brief, {buffer.data(), length, &kBytes}, 0, true).status, Status::ok);
        if (rank == 0 && length == 9000) engine::comm_free(brief);
        if (rank == 0) gate.allgather(rank, &rank, ignored, sizeof rank);
        EXPECT_EQ(buffer.front(), static_cast<char>(i));
        EXPECT_EQ(buffer.back(), static_cast<char>(i));
      }
      if (rank == 1) engine::comm_free(brief);
    }
    engine::comm_free(comm);
  });
}

// A member's bootstrap that counts its exchanges.
struct Counted {
  TestMember member;
  int exchanges = 0;

  engine::Comm* make(engine::Process& process, bool several_nodes = false) {
    engine::Decline why;
    const engine::Bootstrap bootstrap = {member.rank, member.group->size(), this,
                                         [](void* context, const void* mine, void* all, std::size_t bytes) {
                                           auto* self = static_cast<Counted*>(context);
                                           ++self->exchanges;
                                           return self->member.group->allgather(self->member.rank, mine, all, bytes);
                                         },
                                         several_nodes};
    return engine::comm_create(process, bootstrap, kNativeCollectives, why);
  }
};

int exchanges_of(engine::Process& process, Group& group, int rank, bool several_nodes = false) {
  Counted member{{&group, group.rank_of(rank)}};
  engine::Comm* comm = member.make(process, several_nodes);
  EXPECT_NE(comm, nullptr);
  if (comm == nullptr) return -1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
  engine::comm_free(comm);
  return member.exchanges;
}

// Members that may not read each other's memory ask again at each agreement. Without single copy
// nobody asks, on any system.
constexpr engine::Settings kWithoutSingleCopy{.single_copy = SingleCopyChoice::off};

TEST(Agreement, MembersThatHaveMetTakeOneExchange) {
  Group all(everybody(4)), low({0, 1}), high({3, 2}), odd({1, 3}), even({2, 0});
  run_job(4, kWithoutSingleCopy, [&](int rank, engine::Process& process) {
    Group& half = rank < 2 ? low : high;
    EXPECT_EQ(exchanges_of(process, half, rank), 2);
    EXPECT_EQ(exchanges_of(process, half, rank), 1);
    EXPECT_EQ(exchanges_of(process, rank % 2 == 1 ? odd : even, rank), 2) << "they have met others";
    EXPECT_EQ(exchanges_of(process, half, rank), 1) << "forgotten";
    EXPECT_EQ(exchanges_of(process, all, rank), 2) << "each has met some of them";
    for (Group* part : {&low, &high, &odd, &even, &all}) {
      if (part->rank_of(rank) < 0) continue;
      EXPECT_EQ(exchanges_of(process, *part, rank), 1);
    }
    EXPECT_EQ(exchanges_of(process, all, rank, true), 2) << "where each is, and the rest";
  });
}

// Every rank is in many communicators with a few of the others. Whatever ranks forget, all find
// again alike.
TEST(Agreement, ManyMeetingsAreForgottenAlike) {
  constexpr int kRanks = 8;
  std::vector<std::unique_ptr<Group>> pairs;
  for (int a = 0; a < kRanks; ++a) {
    for (int b = a + 1; b < kRanks; ++b) pairs.push_back(std::make_unique<Group>(std::vector<int>{a, b}));
  }
  Group all(everybody(kRanks));
  run_job(kRanks, kWithoutSingleCopy, [&](int rank, engine::Process& process) {
    for (int round = 0; round < 3; ++round) {
      for (auto& pair : pairs) {
        if (pair->rank_of(rank) < 0) continue;
        const int exchanges = exchanges_of(process, *pair, rank);
        EXPECT_TRUE(exchanges == 1 || exchanges == 2);
      }
      if (round == 1) (void)exchanges_of(process, all, rank);
      if (round != 2) continue;
      for (auto& pair : pairs) {
        if (pair->rank_of(rank) < 0) continue;
        EXPECT_EQ(exchanges_of(process, *pair, rank), 1) << "all have met all";
      }
    }
  });
}

// A made-up job: every other member runs where its first half or its second half does.
struct Pretended {
  int ranks;
  std::size_t bytes = 0, most_bytes = 0;

  static bool allgather(void* context, const void* mine, void* all, std::size_t bytes) {
    auto* self = static_cast<Pretended*>(context);
    self->bytes += bytes;
    auto* words = static_cast<char*>(all);
    for (int r = 0; r < self->ranks; ++r, words += bytes) {
      std::memcpy(words, mine, bytes);
      if (r >= self->ranks / 2) words[0] = static_cast<char>(words[0] + 1);  // of the host's number
    }
    return true;
  }
};

TEST(Agreement, ManyRanksOnTwoNodesKeepNothing) {
  constexpr int kRanks = 16'384;
  engine::Process* process = engine::process_create({}, {});
  engine::Decline why;
  const auto agree = [&] {
    Pretended job{kRanks};
    const engine::Bootstrap bootstrap = {0, kRanks, &job, Pretended::allgather, true};
    EXPECT_EQ(engine::comm_create(*process, bootstrap, kNativeCollectives, why), nullptr);
    EXPECT_LE(job.bytes, 16u) << "a rank's words";
  };
  agree();
  EXPECT_STREQ(why.reason, "members are on different nodes");
  EXPECT_EQ(why.rank, kRanks / 2);
  EXPECT_FALSE(engine::has_segment(*process)) << "reserved before it was known who is on the node";
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  const auto before = mallinfo2();
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kTimes = 20;
  for (int i = 0; i < kTimes; ++i) agree();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const auto after = mallinfo2();
  EXPECT_EQ(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd) << "bytes kept";
  RecordProperty("microseconds", static_cast<int>(took.count() / kTimes));
#endif
  engine::process_destroy(process);
}

}  // namespace
}  // namespace stretto::test
