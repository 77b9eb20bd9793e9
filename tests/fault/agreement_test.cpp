// SPDX-License-Identifier: BSD-3-Clause
// For every n, the n-th system call of making a communicator fails. Either all members get the
// communicator or none does. A communicator that they get works, the next attempt works, and no
// descriptor is left behind.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "engine/process.hpp"
#include "sys/fault.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

void use(engine::Comm& comm, int rank) {
  std::vector<char> buffer(20'000, static_cast<char>(rank));
  const auto out = engine::bcast(comm, {buffer.data(), buffer.size(), &kBytes}, 1, true);
  EXPECT_EQ(out.status, Status::ok);
  EXPECT_EQ(buffer.front(), 1);
  EXPECT_EQ(buffer.back(), 1);
  EXPECT_EQ(engine::barrier(comm).status, Status::ok);
}

// How many of three ranks got a communicator at the first attempt. At the second, which has no
// faults, all must get one.
int made_at_first(Group& group, Group& gate) {
  std::atomic<int> made{0};
  run_job(group.size(), {}, [&](int rank, engine::Process& process) {
    engine::Decline why;
    engine::Comm* first = make_comm(process, group, rank, &why);
    if (first) {
      ++made;
      use(*first, rank);
    } else {
      EXPECT_TRUE(why.reason && why.rank >= 0);
    }
    int ignored[8];
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) sys::fault::disarm();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    engine::Comm* second = make_comm(process, group, rank);
    ASSERT_NE(second, nullptr);
    use(*second, rank);
    engine::comm_free(first);
    engine::comm_free(second);
  });
  return made;
}

TEST(Agreement, HoldsWhicheverSystemCallFails) {
  Group group(everybody(3));
  Group gate(everybody(3));
  // more than the system calls of three ranks that make a communicator
  constexpr std::uint64_t kMoreThanItMakes = 40;
  for (const int error : {EACCES, ENOSPC, ENOMEM}) {
    int declined = 0;
    for (std::uint64_t n = 1; n <= kMoreThanItMakes && !HasFailure(); ++n) {
      const auto before = open_descriptors();
      sys::fault::fail_nth(n, error);
      const int made = made_at_first(group, gate);
      EXPECT_TRUE(made == 0 || made == 3) << "call " << n << ": " << made << " of 3 ranks have a communicator";
      declined += made == 0;
      EXPECT_EQ(open_descriptors(), before) << "call " << n;
    }
    EXPECT_GT(declined, 0) << "no failure showed: the test does not reach the system calls";
  }
}

// If /proc refuses, descriptors pass over sockets. If sockets refuse too, all members decline.
TEST(Agreement, PassesDescriptorsWhereProcIsRefused) {
  Group group(everybody(3));
  Group gate(everybody(3));
  ASSERT_TRUE(sys::fault::arm("peer_descriptor_open:*:EACCES"));
  EXPECT_EQ(made_at_first(group, gate), 3);
  ASSERT_TRUE(sys::fault::arm("peer_descriptor_open:*:EACCES,mailbox_open:2:EACCES"));
  EXPECT_EQ(made_at_first(group, gate), 0);
}

// A rank that lacks nothing gets letters like all others. If it did not take them, its mailbox
// would fill up and hold up their senders.
TEST(Agreement, WhoLacksNothingStaysUntilAllLettersAreThere) {
  constexpr int kMany = 64;
  sys::fault::disarm();
  ASSERT_TRUE(sys::fault::arm("peer_descriptor_open:*:EACCES"));
  Group all(everybody(kMany));
  std::vector<int> some = everybody(kMany);
  some.erase(some.begin());
  Group workers(some);
  run_job(kMany, {}, [&](int rank, engine::Process& process) {
    engine::Comm* first = rank != 0 ? make_comm(process, workers, rank - 1) : nullptr;
    EXPECT_EQ(first == nullptr, rank == 0);
    engine::Comm* world = make_comm(process, all, rank);
    ASSERT_NE(world, nullptr);
    EXPECT_EQ(engine::barrier(*world).status, Status::ok);
    engine::comm_free(world);
    engine::comm_free(first);
  });
  sys::fault::disarm();
}

// There is no way to any peer, as between two network namespaces. The ranks learn that at once, and
// not when their patience ends.
TEST(Agreement, RefusedLettersAreNotWaitedFor) {
  sys::fault::disarm();
  ASSERT_TRUE(sys::fault::arm("peer_descriptor_open:*:EACCES,mailbox_send:*:ECONNREFUSED"));
  Group group(everybody(3));
  const auto begin = std::chrono::steady_clock::now();
  run_job(3, {}, [&](int rank, engine::Process& process) { EXPECT_EQ(make_comm(process, group, rank), nullptr); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  sys::fault::disarm();
}

// A segment has grown. Either its peers map more of it, or all decline. The communicators made
// before go on.
TEST(Agreement, GrownSegmentsAreMappedByAllOrByNone) {
  constexpr int kRanks = 3;
  const auto made_after_growth = [&](const char* faults) {
    Group group(everybody(kRanks));
    Group gate(everybody(kRanks));
    std::atomic<int> made{0};
    run_job(kRanks, {}, [&](int rank, engine::Process& process) {
      std::vector<engine::Comm*> comms{make_comm(process, group, rank)};
      const std::size_t first = process.segment.extent();
      int ignored[kRanks];
      gate.allgather(rank, &rank, ignored, sizeof rank);
      if (rank == 0) {
        ASSERT_TRUE(sys::fault::arm(faults));
      }
      gate.allgather(rank, &rank, ignored, sizeof rank);
      while (process.segment.extent() == first && comms.back() != nullptr)
        comms.push_back(make_comm(process, group, rank));
      if (comms.back() != nullptr) ++made;
      for (engine::Comm* comm : comms) {
        if (comm != nullptr) use(*comm, rank);
      }
      gate.allgather(rank, &rank, ignored, sizeof rank);
      if (rank == 0) sys::fault::disarm();
      gate.allgather(rank, &rank, ignored, sizeof rank);
      comms.push_back(make_comm(process, group, rank));
      ASSERT_NE(comms.back(), nullptr);
      for (engine::Comm* comm : comms) {
        if (comm == nullptr) continue;
        use(*comm, rank);
        engine::comm_free(comm);
      }
    });
    return made.load();
  };
  EXPECT_EQ(made_after_growth("map_more:*:EINVAL"), kRanks) << "a descriptor does it as well";
  EXPECT_EQ(made_after_growth("map_more:2:ENOMEM,map_shared:*:ENOMEM"), 0);
}

// A channel takes memory when a rank first writes to it. Without memory the call fails there, and
// on the rank that waits for it. The communicator goes on.
TEST(Agreement, AChannelWithoutMemoryFailsTheCall) {
  constexpr int kRanks = 3;
  Group group(everybody(kRanks));
  Group gate(everybody(kRanks));
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    use(*comm, rank);
    std::vector<char> all(kRanks * 8);
    char mine[8];
    std::memset(mine, rank + 1, sizeof mine);
    const auto gather = [&] {
      return engine::gather(*comm, Collective::gather, {mine, sizeof mine, &kBytes}, {all.data(), &kBytes, 8}, 0, false,
                            true)
          .status;
    };
    int ignored[kRanks];
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) {
      ASSERT_TRUE(sys::fault::arm("memfd_reserve:*:ENOMEM"));
    }
    gate.allgather(rank, &rank, ignored, sizeof rank);
    EXPECT_EQ(gather(), rank == 0 ? Status::peer_failed : Status::no_memory);
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) sys::fault::disarm();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    EXPECT_EQ(gather(), Status::ok);
    if (rank == 0) {
      EXPECT_EQ(all[8], 2);
      EXPECT_EQ(all[23], 3);
    }
    engine::comm_free(comm);
  });
}

// With many members the block has room for one ack line. Without memory for more, each rank that
// must read from several fails the call. Nobody waits for ever, and the communicator goes on.
TEST(Agreement, AnAckLineWithoutMemoryFailsTheCall) {
  constexpr int kRanks = 18;
  Group group(everybody(kRanks));
  Group gate(everybody(kRanks));
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    engine::Comm* const comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    int all[kRanks], ignored[kRanks];
    const auto allgather = [&] {
      return engine::allgather(*comm, Collective::allgather, {reinterpret_cast<char*>(&rank), sizeof rank, &kBytes},
                               {reinterpret_cast<char*>(all), &kBytes, sizeof rank}, false, true)
          .status;
    };
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) {
      ASSERT_TRUE(sys::fault::arm("memfd_reserve:*:ENOMEM"));
    }
    gate.allgather(rank, &rank, ignored, sizeof rank);
    const Status status = allgather();
    EXPECT_TRUE(status == Status::no_memory || status == Status::peer_failed);
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) sys::fault::disarm();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    EXPECT_EQ(allgather(), Status::ok);
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(all[r], r);
    engine::comm_free(comm);
  });
}

// Each job uses names of its own.
TEST(Agreement, JobsPassDescriptorsAtTheSameTime) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(sys::fault::arm("peer_descriptor_open:*:EACCES"));
    const auto job = [] {
      Group group(everybody(3));
      Group gate(everybody(3));
      EXPECT_EQ(made_at_first(group, gate), 3);
    };
    std::thread other(job);
    job();
    other.join();
  }
}

// What the system says does not change from one communicator to the next. Only where the process
// may run is asked again.
TEST(Agreement, MembersThatHaveMetAskTheSystemForLittle) {
  constexpr int kRanks = 4;
  constexpr int kTimes = 50;
  Group group(everybody(kRanks));
  Group gate(everybody(kRanks));
  std::atomic<std::uint64_t> calls{0};
  run_job(kRanks, {}, [&](int rank, engine::Process& process) {
    int ignored[kRanks];
    const auto make = [&] {
      engine::Comm* comm = make_comm(process, group, rank);
      ASSERT_NE(comm, nullptr);
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      engine::comm_free(comm);
    };
    for (int i = 0; i < 5; ++i) make();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) sys::fault::disarm();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    for (int i = 0; i < kTimes; ++i) make();
    gate.allgather(rank, &rank, ignored, sizeof rank);
    if (rank == 0) calls = sys::fault::calls();
  });
  constexpr std::uint64_t kGrowth = 8;  // growth of the segments, where a block is not free again yet
  EXPECT_LE(calls, kRanks * kTimes + kGrowth) << "more than one for each rank and communicator";
  EXPECT_GT(calls, 0u);
}

}  // namespace
}  // namespace stretto::test
