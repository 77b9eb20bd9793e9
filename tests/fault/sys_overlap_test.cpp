// SPDX-License-Identifier: BSD-3-Clause
// Guarded pages, caught calls and waits: each system call fails once. No byte is lost. No
// descriptor, mapping, registration or signal handler is left behind.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <csignal>
#include <fstream>

#include "sys/calls.hpp"
#include "sys/fault.hpp"
#include "sys/faults.hpp"
#include "sys/poller.hpp"
#include "sys/sys.hpp"
#include "unit/faults_support.hpp"

using namespace stretto::sys;
using namespace stretto::test;

namespace {

struct OverlapFault : testing::Test {
  void SetUp() override { fault::disarm(); }
  void TearDown() override { fault::disarm(); }
};

constexpr std::size_t kBytes = 6 << 20;  // three pieces at least

int mapped_ranges() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;  // the sanitizer maps memory of its own
#endif
  std::ifstream maps("/proc/self/maps");
  std::string line;
  int count = 0;
  while (std::getline(maps, line)) ++count;
  return count;
}

bool can_guard() {
  Faults faults;
  const bool can = faults_open(FaultMode::user, Events::none, &faults) == 0 && faults.can_move;
  faults_close(&faults);
  return can;
}

// Nobody has it registered: a guard of another userfaultfd goes through.
void expect_free(Pages pages) {
  Faults faults;
  ASSERT_EQ(faults_open(FaultMode::user, Events::none, &faults), 0);
  const Spare spare(faults, pages);
  std::size_t moved = 0;
  EXPECT_EQ(faults_guard(faults, pages, spare.pages), 0);
  EXPECT_EQ(faults_move_in(faults, pages.at, spare.pages.at, pages.bytes, &moved), 0);
  EXPECT_EQ(faults_release(faults, pages), 0);
  faults_close(&faults);
}

// Moves data in as the next room will: what fails is tried once more.
template <class Action>
int insistently(int* error, Action action) {
  const int first = action();
  if (first == 0) return 0;
  if (*error == 0) *error = first;
  return action();
}

// The life of a guarded buffer of sevens, some of whose pages were never touched. It ends with the
// data in it. The first error, or 0.
int guard_a_buffer(Pages pages) {
  std::memset(pages.at, 7, pages.bytes);
  madvise(pages.at + (3 << 20), 64 << 10, MADV_DONTNEED);
  const auto as_before = [&](const char* at) {
    return all_are(at, 3 << 20, 7) && all_are(at + (3 << 20), 64 << 10, 0) &&
           all_are(at + (3 << 20) + (64 << 10), pages.bytes - (3 << 20) - (64 << 10), 7);
  };
  Faults faults;
  Pages spare;
  FaultEvent events[kMostFaultEvents];
  int count = 0;
  if (const int error = faults_open(FaultMode::kernel, Events::none, &faults)) return error;
  int error = spare_map(faults, pages.bytes, pages.at, &spare);
  if (error == 0) {
    error = faults_guard(faults, pages, spare);
    if (error != 0) {
      EXPECT_TRUE(as_before(pages.at)) << "after a guard that failed";
    } else {
      EXPECT_TRUE(as_before(spare.at));
      std::size_t zeroed = 0, copied = 0, moved = 0;
      constexpr std::size_t kZeros = 8192, kCopied = 64 << 10;
      EXPECT_EQ(insistently(&error, [&] { return faults_zero(faults, pages.at, kZeros, &zeroed); }), 0);
      EXPECT_EQ(
          insistently(&error,
                      [&] { return faults_copy(faults, pages.at + kZeros, spare.at + kZeros, kCopied, &copied); }),
          0);
      EXPECT_EQ(insistently(&error, [&] { return spare_empty(faults, {spare.at, kZeros + kCopied}); }), 0);
      moved = kZeros + kCopied;
      EXPECT_EQ(insistently(&error, [&] { return faults_move_in(faults, pages.at, spare.at, pages.bytes, &moved); }),
                0);
      EXPECT_EQ(insistently(&error, [&] { return faults_wake(faults, pages); }), 0);
      const int none = faults_next(faults, events, &count);
      if (error == 0 && none != EAGAIN) error = none;
      EXPECT_EQ(insistently(&error, [&] { return faults_release(faults, pages); }), 0);
      EXPECT_TRUE(all_are(pages.at, kZeros, 0));
      std::memset(pages.at, 7, kZeros);
      EXPECT_TRUE(as_before(pages.at)) << "after a guard";
    }
  }
  spare_unmap(faults, &spare);
  faults_close(&faults);
  return error;
}

// Some failures change nothing: another way leads on.
TEST_F(OverlapFault, EveryCallOfAGuardInTurn) {
  if (!can_guard()) GTEST_SKIP() << "no userfaultfd that moves pages here";
  const Mapped buffer(kBytes, 7);
  fault::disarm();
  ASSERT_EQ(guard_a_buffer(buffer.pages()), 0);
  const std::uint64_t calls = fault::calls();
  EXPECT_GE(calls, 25u);
  const int descriptors = open_descriptors(), ranges = mapped_ranges();
  int failed = 0;
  for (std::uint64_t n = 1; n <= calls; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(calls));
    fault::fail_nth(n, EIO);
    const int error = guard_a_buffer(buffer.pages());
    EXPECT_EQ(fault::strikes(), 1u);
    EXPECT_TRUE(error == 0 || error == EIO) << error;
    failed += error == EIO ? 1 : 0;
    fault::disarm();
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(mapped_ranges(), ranges);
    expect_free(buffer.pages());
  }
  EXPECT_GE(failed, 20);
}

// The move back fails as well: bytes are copied back. Then the copy cannot begin either.
TEST_F(OverlapFault, AFailedGuardIsPutBackWithoutMoves) {
  if (!can_guard()) GTEST_SKIP() << "no userfaultfd that moves pages here";
  const Mapped buffer(kBytes, 7);
  Faults faults;
  ASSERT_EQ(faults_open(FaultMode::user, Events::none, &faults), 0);
  {
    const Spare spare(faults, buffer.pages());
    ASSERT_TRUE(fault::arm("faults_move:3:EIO,faults_move:4:EIO,faults_move:5:EIO"));
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), EIO);
    EXPECT_EQ(fault::strikes(), 3u);
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
    fault::disarm();
    expect_free(buffer.pages());
    std::size_t moved = 0;
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), 0);  // with the same spare memory
    EXPECT_EQ(faults_move_in(faults, buffer.at(), spare.pages.at, kBytes, &moved), 0);

    ASSERT_EQ(faults_release(faults, buffer.pages()), 0);
    ASSERT_TRUE(fault::arm("faults_move:3:EIO,faults_move:4:EIO,faults_move:5:EIO,faults_release:*:EIO"));
    EXPECT_EQ(faults_guard(faults, buffer.pages(), spare.pages), ENOTRECOVERABLE);
    fault::disarm();
    moved = 0;  // what came out first is what is missing
    const int end = faults_move_in(faults, buffer.at(), spare.pages.at, kBytes, &moved);
    EXPECT_TRUE(end == ENOENT || end == EEXIST) << end;
    EXPECT_GE(moved, 2u << 20);
    EXPECT_EQ(faults_release(faults, buffer.pages()), 0);
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7));
  }
  faults_close(&faults);
}

TEST_F(OverlapFault, ResultsStayAsTheyWere) {
  if (!can_guard()) GTEST_SKIP() << "no userfaultfd that moves pages here";
  Faults faults;
  ASSERT_TRUE(fault::arm("faults_open.features:*:EINVAL"));
  EXPECT_EQ(faults_open(FaultMode::kernel, Events::none, &faults), EINVAL);
  EXPECT_EQ(faults.fd, -1);
  fault::disarm();
  ASSERT_TRUE(fault::arm("faults_open.device:*:EACCES,spare_map.protect:*:ENOMEM,pages_resident:*:EIO"));
  ASSERT_EQ(faults_open(FaultMode::user, Events::none, &faults), 0);
  Pages spare{nullptr, 3};
  std::size_t count = 5;
  EXPECT_EQ(spare_map(faults, 4096, nullptr, &spare), ENOMEM);
  EXPECT_EQ(spare.bytes, 3u);
  EXPECT_EQ(pages_resident(faults, {reinterpret_cast<char*>(4096), 4096}, &count), EIO);
  EXPECT_EQ(count, 5u);
  faults_close(&faults);
}

// Without kernel faults, and without user mode.
TEST_F(OverlapFault, OpeningFallsBackToUserMode) {
  if (!can_guard()) GTEST_SKIP() << "no userfaultfd that moves pages here";
  Faults faults;
  ASSERT_TRUE(fault::arm("faults_open.device:*:EACCES,faults_open:1:EPERM"));
  EXPECT_EQ(faults_open(FaultMode::kernel, Events::memory_and_fork, &faults), 0);
  EXPECT_EQ(faults.mode, FaultMode::user);
  faults_close(&faults);
  fault::disarm();
  ASSERT_TRUE(fault::arm("faults_open.device:*:EACCES,faults_open:*:EPERM"));
  EXPECT_EQ(faults_open(FaultMode::kernel, Events::none, &faults), EPERM);
  EXPECT_EQ(faults.mode, FaultMode::none);
}

// ---- caught calls ----

int catch_a_call() {
  const CallHandler pass = [](void*, const CaughtCall& call) {
    return CallAnswer{false, call_through(call.number, call.arguments)};
  };
  int error = calls_install(pass, nullptr);
  if (error == 0) error = calls_on();
  EXPECT_GT(getppid(), 0);
  calls_off();
  calls_uninstall();
  return error;
}

TEST_F(OverlapFault, EveryCallOfCatchingInTurn) {
  const int refused = catch_a_call();
  if (refused != 0) GTEST_SKIP() << "system calls cannot be caught: " << std::strerror(refused);
  const std::uint64_t calls = fault::calls();
  EXPECT_GE(calls, 6u);
  for (std::uint64_t n = 1; n <= calls; ++n) {
    fault::fail_nth(n, EPERM);
    EXPECT_EQ(catch_a_call(), EPERM) << "call " << n;
    struct sigaction action{};
    sigaction(SIGSYS, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL);
  }
}

// ---- waits ----

int wait_for_a_pipe() {
  Poller poller;
  Ready ready[kMostReady];
  int count = 0, ends[2];
  bool woken = false;
  EXPECT_EQ(pipe(ends), 0);
  int error = poller_open(&poller);
  if (error == 0) error = poller_add(poller, ends[1], {}, 1);
  if (error == 0) error = poller_modify(poller, ends[1], {false, true}, 2);
  if (error == 0) error = poller_wake(poller);
  if (error == 0) error = poller_wait(poller, kForever, ready, &count, &woken);
  if (error == 0) EXPECT_TRUE(woken && count == 1 && ready[0].tag == 2);
  if (error == 0) error = poller_remove(poller, ends[1]);
  poller_close(&poller);
  for (const int end : ends) close_descriptor(end);
  return error;
}

TEST_F(OverlapFault, EveryCallOfAWaitInTurn) {
  ASSERT_EQ(wait_for_a_pipe(), 0);
  const std::uint64_t calls = fault::calls();
  EXPECT_EQ(calls, 8u);
  const int before = open_descriptors();
  for (std::uint64_t n = 1; n <= calls; ++n) {
    fault::fail_nth(n, EMFILE);
    EXPECT_EQ(wait_for_a_pipe(), EMFILE) << "call " << n;
    EXPECT_EQ(open_descriptors(), before) << "call " << n;
  }
  ASSERT_TRUE(fault::arm("stream_readable_from:*:EIO,stream_keeps:*:EIO,stream_urgency:*:EIO"));
  EXPECT_EQ(stream_readable_from(-1, 1, 1), EIO);
  EXPECT_EQ(stream_keeps(-1, 1), EIO);
  EXPECT_EQ(stream_urgency(-1, Urgency::high), EIO);
}

}  // namespace
