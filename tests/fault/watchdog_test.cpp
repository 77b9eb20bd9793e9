// SPDX-License-Identifier: BSD-3-Clause
// The watchdog cannot see a peer's process, as across PID namespaces. It says so, and does not take
// the peer for dead.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sys/fault.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

TEST(Watchdog, DoesNotGuessWhetherAProcessOutOfSightLives) {
  sys::fault::disarm();
  ASSERT_TRUE(sys::fault::arm("start_time:*:EACCES"));
  Group group(everybody(2));
  engine::Settings settings;
  settings.watchdog_seconds = 1;
  testing::internal::CaptureStderr();
  run_job(2, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1600));
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find(", out of sight) has called no collective yet"), std::string::npos) << text;
  sys::fault::disarm();
}

}  // namespace
}  // namespace stretto::test
