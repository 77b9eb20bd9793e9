// SPDX-License-Identifier: BSD-3-Clause
// Communicators: made together, freed apart, leaving nothing.
#include <gtest/gtest.h>

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
        EXPECT_STREQ(why.reason, "the lanes (16 x STRETTO_SLOTS x STRETTO_SLOT_BYTES) do not fit into STRETTO_SEGMENT_BYTES");
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

// A root may leave a communicator while its data still wait for a slow reader: they must survive all reuse.
TEST(Agreement, FreedCommunicatorsDataStayUntilRead) {  Group world(everybody(2));
  Group dup(everybody(2));
  Group gate(everybody(2));
  run_job(2, {}, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    for (int i = 0; i < 50 * kEffort; ++i) {
      engine::Comm* brief = make_comm(process, dup, rank);
      int ignored[2];
      for (const std::size_t length : {40, 9000}) {
        std::vector<char> buffer(length, static_cast<char>(rank == 0 ? i : -1));
        if (rank == 1) gate.allgather(rank, &rank, ignored, sizeof rank);  // until the root has left
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

}  // namespace
}  // namespace stretto::test
