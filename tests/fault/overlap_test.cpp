// SPDX-License-Identifier: BSD-3-Clause
// Covers while system calls fail. The buffer has its data, and nothing is left behind.
#include <gtest/gtest.h>

#include <fstream>

#include "sys/fault.hpp"
#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;
namespace fault = stretto::sys::fault;

namespace {

constexpr std::size_t kBytes = 6 << 20, kPart = 1 << 20;

struct OverlapGuardFault : testing::Test {
  void SetUp() override {
    fault::disarm();
    Guard guard;
    const std::string why = open_guard(&guard, sys::FaultMode::user);
    if (!why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { fault::disarm(); }
};

int mapped_ranges() {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int count = 0;
  while (std::getline(maps, line)) ++count;
  return count;
}

// Nobody guards it: another guard takes it, and gives it back.
void expect_free(sys::Pages pages, char value) {
  Guard guard;
  int cover = -1;
  ASSERT_EQ(open_guard(&guard, sys::FaultMode::user), "");
  EXPECT_EQ(guard.cover(pages, &cover), Refusal::none);
  EXPECT_EQ(guard.release(cover), 0);
  EXPECT_TRUE(all_are(pages.at, pages.bytes, value));
}

// What fails is tried once more.
template <class Action>
void insistently(int* error, Action action) {
  const int first = action();
  if (first == 0) return;
  if (*error == 0) *error = first;
  EXPECT_EQ(action(), 0);
}

// The life of a buffer of sevens, which receives nines. Whether it was guarded.
bool guard_a_buffer(sys::Pages pages, int* error) {
  std::memset(pages.at, 7, pages.bytes);
  Guard guard;
  int cover = -1;
  Guard::Limits limits;
  *error = guard.open(limits);
  if (*error != 0) return false;
  const Refusal why = guard.cover(pages, &cover);
  if (why != Refusal::none) {
    EXPECT_TRUE(why == Refusal::failed || why == Refusal::no_memory) << text_of(why);
    EXPECT_TRUE(all_are(pages.at, pages.bytes, 7)) << "after a refusal";
    EXPECT_FALSE(guard.any_away());
    return false;
  }
  std::memset(guard.landing(cover), 9, pages.bytes);
  insistently(error, [&] { return guard.publish(cover, 0, kPart); });
  insistently(error, [&] { return guard.publish(cover, 2 * kPart, kPart); });
  Told told[8];
  int count = 0;
  insistently(error, [&] { return guard.events(told, 8, &count); });
  EXPECT_EQ(count, 0);
  insistently(error, [&] { return guard.release(cover); });
  EXPECT_TRUE(all_are(pages.at, pages.bytes, 9)) << "after a cover";
  return true;
}

TEST_F(OverlapGuardFault, EveryCallOfACoverInTurn) {
  const Mapped buffer(kBytes, 7);
  int error = 0;
  fault::disarm();
  ASSERT_TRUE(guard_a_buffer(buffer.pages(), &error));
  ASSERT_EQ(error, 0);
  const std::uint64_t calls = fault::calls();
  EXPECT_GE(calls, 20u);
  const int descriptors = open_descriptors(), ranges = mapped_ranges();
  int refused = 0;
  for (std::uint64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    fault::fail_nth(n, EIO);
    const bool guarded = guard_a_buffer(buffer.pages(), &error);
    EXPECT_EQ(fault::strikes(), 1u);
    EXPECT_TRUE(error == 0 || error == EIO) << error;
    refused += guarded ? 0 : 1;
    fault::disarm();
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(mapped_ranges(), ranges);
    expect_free(buffer.pages(), guarded ? 9 : 7);
  }
  EXPECT_GE(refused, 8);
}

TEST_F(OverlapGuardFault, EachErrorHasItsRefusal) {
  const Mapped buffer(kBytes, 7);
  Guard guard;
  int cover = -1;
  ASSERT_EQ(open_guard(&guard, sys::FaultMode::user), "");
  const std::pair<const char*, Refusal> kCases[] = {
      {"faults_guard:*:EINVAL", Refusal::not_anonymous}, {"faults_guard:*:EADDRINUSE", Refusal::foreign},
      {"faults_move:*:EBUSY", Refusal::pinned},          {"faults_move:*:EOPNOTSUPP", Refusal::cannot_move},
      {"faults_move:*:EAGAIN", Refusal::events_unread},  {"faults_move:*:ENOMEM", Refusal::no_memory},
      {"spare_map:*:ENOMEM", Refusal::no_memory},        {"faults_guard:*:EIO", Refusal::failed}};
  for (const auto& [rule, why] : kCases) {
    SCOPED_TRACE(rule);
    fault::disarm();
    ASSERT_TRUE(fault::arm(rule));
    const Refusal said = guard.cover(buffer.pages(), &cover);
    EXPECT_GE(fault::strikes(), 1u);
    EXPECT_EQ(said, why) << text_of(said);
    fault::disarm();
    EXPECT_EQ(cover, -1);
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
  }
  guard.close();
  expect_free(buffer.pages(), 7);
}

// The kernel refuses to move back, and to release spare memory: pages are looked for one by one.
TEST_F(OverlapGuardFault, ACoverThatFailsSeveralTimesIsRescued) {
  const Mapped buffer(kBytes, 7);
  for (const char* const release : {"faults_release:1:EIO,faults_release:2:EIO", "faults_release:*:EIO"}) {
    Guard guard;
    int cover = -1;
    ASSERT_EQ(open_guard(&guard, sys::FaultMode::user), "");
    fault::disarm();
    ASSERT_TRUE(fault::arm((std::string("faults_move:3:EIO,faults_move:4:EIO,faults_move:5:EIO,") + release).c_str()));
    EXPECT_EQ(guard.cover(buffer.pages(), &cover), Refusal::failed);
    EXPECT_GE(fault::strikes(), 5u);
    fault::disarm();
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
    EXPECT_EQ(guard.cover(buffer.pages(), &cover), Refusal::none);
    EXPECT_EQ(guard.release(cover), 0);
    guard.close();
    expect_free(buffer.pages(), 7);
  }
}

TEST_F(OverlapGuardFault, WhatCannotMoveIsCopiedOrWaits) {
  const Mapped buffer(kBytes, 7);
  Guard guard;
  int cover = -1;
  ASSERT_EQ(open_guard(&guard, sys::FaultMode::user), "");
  ASSERT_EQ(guard.cover(buffer.pages(), &cover), Refusal::none);
  std::memset(guard.landing(cover), 9, kBytes);
  ASSERT_TRUE(fault::arm("faults_move:*:EBUSY"));
  EXPECT_EQ(guard.publish(cover, 0, kPart), 0);
  EXPECT_TRUE(all_are(buffer.at(), kPart, 9));
  ASSERT_TRUE(fault::arm("faults_copy:*:EIO"));
  EXPECT_EQ(guard.publish(cover, kPart, kPart), EIO);
  EXPECT_EQ(guard.release(cover), EIO);
  fault::disarm();
  ASSERT_TRUE(fault::arm("faults_move:*:EAGAIN"));
  EXPECT_EQ(guard.publish(cover, kPart, kPart), EAGAIN);
  EXPECT_EQ(guard.away_bytes(cover), kBytes - kPart);
  fault::disarm();
  EXPECT_EQ(guard.release(cover), 0);
  EXPECT_TRUE(all_are(buffer.at(), kBytes, 9));
  guard.close();
  expect_free(buffer.pages(), 9);
}

TEST_F(OverlapGuardFault, APageThatIsThereAlreadyIsToldAndSoIsOneThatIsGone) {
  const Mapped buffer(kBytes, 7);
  Guard guard;
  int cover = -1, count = 0;
  Told told[8];
  ASSERT_EQ(open_guard(&guard, sys::FaultMode::user), "");
  ASSERT_EQ(guard.cover(buffer.pages(), &cover), Refusal::none);
  std::memset(guard.landing(cover), 9, kBytes);
  const std::size_t page = guard.faults().page_bytes;
  ASSERT_TRUE(fault::arm("faults_move:1:EEXIST"));
  EXPECT_EQ(guard.publish(cover, 0, 4 * page), 0);
  fault::disarm();
  ASSERT_TRUE(fault::arm("faults_move:1:EINVAL,faults_copy:1:ENOENT"));
  EXPECT_EQ(guard.publish(cover, 4 * page, page), 0);
  fault::disarm();
  EXPECT_EQ(guard.events(told, 8, &count), 0);
  ASSERT_EQ(count, 2);
  EXPECT_TRUE(told[0].kind == Told::Kind::clash && told[0].offset == 0 && told[0].bytes == page);
  EXPECT_TRUE(told[1].kind == Told::Kind::dropped && told[1].offset == 4 * page);
  EXPECT_EQ(guard.release(cover), 0);
  EXPECT_TRUE(all_are(buffer.at() + page, 3 * page, 9));
  EXPECT_TRUE(all_are(buffer.at() + 5 * page, kBytes - 5 * page, 9));
}

// A thread waits for a zero page that cannot be placed at once.
TEST_F(OverlapGuardFault, AZeroPageThatFailsIsPlacedLater) {
  const int status = in_guarded_child(false, [] {
    const Mapped buffer(kBytes, 7);
    Guard guard;
    int cover = -1;
    EXPECT_EQ(open_guard(&guard, sys::FaultMode::user), "");
    EXPECT_EQ(guard.cover(buffer.pages(), &cover), Refusal::none);
    EXPECT_TRUE(fault::arm("faults_zero:1:EAGAIN,faults_zero:2:EIO"));
    Driver driver(&guard);
    madvise(buffer.at(), 4096, MADV_DONTNEED);
    EXPECT_EQ(*static_cast<volatile char*>(buffer.at()), 0);
    EXPECT_EQ(fault::strikes(), 2u);
    fault::disarm();
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(buffer.at() + 4096, kBytes - 4096, 7));
    driver.stop();
    return 0;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
