// SPDX-License-Identifier: BSD-3-Clause
// Which of the host's waits give the processor away, by what a thread has used and lost in them.
#include "mpi/waits/host_yields.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>

using stretto::mpi::HostYields;

namespace {

constexpr std::uint64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;

TEST(HostYields, NothingIsKnownWhileNobodyElseWantsTheProcessor) {
  HostYields waits;
  for (int i = 0; i < 100; ++i) waits.add(kMillisecond, kMillisecond, 0);
  EXPECT_FALSE(waits.hold_processor());
}

TEST(HostYields, OneThatSpinsIsKnownAfterSomeTimeSlices) {
  HostYields waits;
  waits.add(6 * kMillisecond, 3 * kMillisecond, 1);
  EXPECT_FALSE(waits.hold_processor());
  waits.add(6 * kMillisecond, 3 * kMillisecond, 1);
  EXPECT_TRUE(waits.hold_processor());
}

TEST(HostYields, OneThatSpinsForABitHoldsTheProcessor) {
  HostYields waits;
  for (int i = 0; i < 20; ++i) waits.add(kMillisecond, 300 * kMicrosecond, 1);
  EXPECT_TRUE(waits.hold_processor());
}

// A rank that shares the processor yields it at once, so that it loses no time there.
TEST(HostYields, AFewTimeSlicesTellEvenIfOthersTakeNone) {
  HostYields waits;
  const auto slice = [&] { waits.add(4 * kMillisecond + kMicrosecond, 4 * kMillisecond, 1); };
  for (int i = 0; i < 3; ++i) slice();
  EXPECT_FALSE(waits.are_known());
  slice();
  EXPECT_TRUE(waits.hold_processor());
}

TEST(HostYields, LongCallsAreFoundAmongManyShortOnes) {
  HostYields waits;
  for (int i = 0; i < 40; ++i) const HostYields::Watched call(waits);
  for (int i = 0; i < 2; ++i) {  // the first one need not be watched
    const HostYields::Watched call(waits);
    for (int nap = 0; nap < 20; ++nap) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  EXPECT_TRUE(waits.are_known());
  EXPECT_FALSE(waits.hold_processor());
}

// Others may keep the processor for long.
TEST(HostYields, OneThatYieldsIsKnownByTheTimeThatItUses) {
  HostYields waits;
  for (int i = 0; i < 20; ++i) waits.add(3 * kMillisecond, 20 * kMicrosecond, 1);
  EXPECT_FALSE(waits.hold_processor());
}

// Two threads on one processor, one of which waits.
void share_a_processor(void (*wait)(const std::atomic<bool>&), HostYields& waits) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> stopped{false}, done{false};
  std::thread other([&] {
    while (!stopped) {
    }
  });
  std::thread timer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    done = true;
  });
  {
    const HostYields::Watched watched(waits);
    wait(done);
  }
  stopped = true;
  other.join();
  timer.join();
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(HostYields, TheSystemTellsSpinningFromYielding) {
  HostYields spins, yields;
  share_a_processor(
      [](const std::atomic<bool>& done) {
        while (!done) {
        }
      },
      spins);
  share_a_processor(
      [](const std::atomic<bool>& done) {
        while (!done) sched_yield();
      },
      yields);
  EXPECT_TRUE(spins.hold_processor());
  EXPECT_FALSE(yields.hold_processor());
}

}  // namespace
