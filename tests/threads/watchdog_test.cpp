// SPDX-License-Identifier: BSD-3-Clause
// The watchdog is silent while calls end in time. When one does not, it names the missing rank and
// what that rank did last.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "engine/process.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

// What three ranks write to standard error when rank 2 comes `late` to the second Barrier.
std::string told(unsigned watchdog_seconds, std::chrono::milliseconds late) {
  Group group(everybody(3));
  engine::Settings settings;
  settings.watchdog_seconds = watchdog_seconds;
  testing::internal::CaptureStderr();
  run_job(3, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    char byte = 0;
    EXPECT_EQ(engine::bcast(*comm, {&byte, 1, &kBytes}, 0, true).status, Status::ok);
    if (rank == 2) std::this_thread::sleep_for(late);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
  return testing::internal::GetCapturedStderr();
}

TEST(Watchdog, NamesWhoIsMissing) {
  const std::string text = told(1, std::chrono::milliseconds(2500));
  EXPECT_NE(text.find("watchdog: MPI_Barrier has not ended for "), std::string::npos) << text;
  EXPECT_NE(text.find("call 3 on a communicator of 3 ranks; waiting: 0, 1; missing: 2; through: none"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("is in no collective since it came back from MPI_Bcast, call 2 here"), std::string::npos) << text;
  EXPECT_NE(text.find("latest first: MPI_Bcast 2; MPI_Barrier 1"), std::string::npos) << text;
  EXPECT_EQ(text.find("has not ended"), text.rfind("has not ended")) << "one rank speaks for all, once\n" << text;
}

// Rank 1 has done its part in the Gather to rank 0, and rank 2 has not come. Both have made more
// calls elsewhere than notes can hold.
TEST(Watchdog, KnowsWhereARankStandsWhoseNotesAreWrittenOver) {
  Group group(everybody(3));
  engine::Settings settings;
  settings.watchdog_seconds = 1;
  testing::internal::CaptureStderr();
  run_job(3, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    const auto gather = [&] {
      char all[3] = {}, own = 1;
      EXPECT_EQ(engine::gather(*comm, Collective::gather, {&own, 1, &kBytes}, {all, &kBytes, 1}, 0, false, true).status,
                Status::ok);
    };
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    if (rank == 1) gather();
    for (unsigned i = 0; rank != 0 && i < shm::kNotes; ++i) {
      const std::uint64_t number =
          process.journal.begin(shm::kByHost, static_cast<std::uint64_t>(Collective::barrier), {});
      process.journal.end(number, shm::Progress::ended);
    }
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    if (rank != 1) gather();
    engine::comm_free(comm);
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("call 2 on a communicator of 3 ranks; waiting: 0; missing: 2; through: 1"), std::string::npos)
      << text;
  EXPECT_NE(text.find(") is in no collective since it came back from MPI_Barrier, which the MPI serves; its last call "
                      "here is number 1\n"),
            std::string::npos)
      << text;
}

TEST(Watchdog, IsSilentOtherwise) {
  EXPECT_EQ(told(0, std::chrono::milliseconds(1500)), "");
  EXPECT_EQ(told(60, std::chrono::milliseconds(200)), "");
}

// Notes are written while the watchdogs of this process and of the peers read them.
TEST(Watchdog, ReadsNotesThatAreBeingWritten) {
  Group group(everybody(3));
  engine::Settings settings;
  settings.watchdog_seconds = 1;
  run_job(3, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
    char go_on = 1;
    while (go_on) {
      go_on = rank == 0 && std::chrono::steady_clock::now() < end;
      ASSERT_EQ(engine::bcast(*comm, {&go_on, 1, &kBytes}, 0, true).status, Status::ok);
    }
    engine::comm_free(comm);
  });
}

}  // namespace
}  // namespace stretto::test
