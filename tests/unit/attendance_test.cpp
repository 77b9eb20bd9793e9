// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a node find out by names alone whether all of them have the library.
#include "engine/attendance.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace stretto::engine {
namespace {

std::uint64_t some_job() {
  std::uint64_t job = 0;
  EXPECT_EQ(sys::random_bytes(&job, sizeof job), 0);
  return job;
}

// All ranks ask at once. Returns their verdicts.
std::vector<Attendance::Verdict> ask(std::vector<Attendance>& ranks) {
  std::vector<Attendance::Verdict> verdicts(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) threads.emplace_back([&, r] { verdicts[r] = ranks[r].verdict(); });
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

class AttendanceOf : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Ranks, AttendanceOf, testing::Values(2u, 3u, 5u, 16u, 64u));

TEST_P(AttendanceOf, AllAreSeen) {
  const std::uint64_t job = some_job();
  std::vector<Attendance> ranks(GetParam());
  for (unsigned r = 0; r < GetParam(); ++r) ASSERT_TRUE(ranks[r].enter(job, r, GetParam()));
  int counted = 0;
  for (const Attendance::Verdict& verdict : ask(ranks)) {
    EXPECT_TRUE(verdict.all);
    counted += verdict.first ? 1 : 0;
  }
  EXPECT_EQ(counted, 1);
  for (Attendance& rank : ranks) rank.leave();
  EXPECT_TRUE(ranks[0].verdict().all) << "it knows";
}

TEST_P(AttendanceOf, OneIsMissing) {
  const std::uint64_t job = some_job();
  const unsigned slots = GetParam() + 1;
  for (unsigned missing = 0; missing < slots; missing += slots - 1) {
    std::vector<Attendance> ranks(GetParam());
    for (unsigned r = 0; r < GetParam(); ++r) ASSERT_TRUE(ranks[r].enter(job, r + (r >= missing ? 1 : 0), slots));
    for (const Attendance::Verdict& verdict : ask(ranks)) {
      EXPECT_FALSE(verdict.all);
      EXPECT_EQ(verdict.present, verdict.first ? GetParam() : 0);
    }
    for (Attendance& rank : ranks) rank.leave();
  }
}

// An MPI may let ranks leave MPI_Init early. The verdict binds a rank that comes late.
TEST(Attendance, TheFirstVerdictHoldsForAll) {
  const std::uint64_t job = some_job();
  Attendance early, late;
  ASSERT_TRUE(early.enter(job, 0, 2));
  EXPECT_FALSE(early.verdict().all);
  ASSERT_TRUE(late.enter(job, 1, 2));
  EXPECT_FALSE(late.verdict().all);
  early.leave();
  late.leave();
}

TEST(Attendance, WhoCountsMayWait) {
  const std::uint64_t job = some_job();
  Attendance early, late;
  ASSERT_TRUE(early.enter(job, 0, 2));
  std::thread comes_late([&] {
    sys::nap_ns(20'000'000);
    EXPECT_TRUE(late.enter(job, 1, 2));
  });
  EXPECT_TRUE(early.verdict(10'000'000'000).all);
  comes_late.join();
  EXPECT_TRUE(late.verdict().all);
  early.leave();
  late.leave();
}

TEST(Attendance, JobsDoNotMix) {
  Attendance one, other;
  ASSERT_TRUE(one.enter(some_job(), 0, 2));
  ASSERT_TRUE(other.enter(some_job(), 1, 2));
  EXPECT_FALSE(one.verdict().all);
  EXPECT_FALSE(other.verdict().all);
  one.leave();
  other.leave();
}

// Two cases take a name: a child with its parent's environment, and the next program of the same
// job.
TEST(Attendance, ANameThatIsTakenCounts) {
  const std::uint64_t job = some_job();
  for (int program = 0; program < 2; ++program) {
    Attendance first, second, again;
    ASSERT_TRUE(first.enter(job, 0, 2));
    ASSERT_TRUE(second.enter(job, 1, 2));
    ASSERT_TRUE(again.enter(job, 1, 2));
    EXPECT_TRUE(first.verdict().all);
    EXPECT_TRUE(second.verdict().all);
    EXPECT_TRUE(again.verdict().all);
    for (Attendance* each : {&first, &second, &again}) each->leave();
  }
}

}  // namespace
}  // namespace stretto::engine
