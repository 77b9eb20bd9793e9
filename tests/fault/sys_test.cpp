// SPDX-License-Identifier: BSD-3-Clause
// Every call of sys fails once. The error comes back, results stay as they were, and no descriptor
// or mapping is left.
#include "sys/sys.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "sys/fault.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

struct SysFault : testing::Test {
  void SetUp() override { fault::disarm(); }
  void TearDown() override { fault::disarm(); }
};

// The life of a segment that a process passes to itself, as the engine does it. Returns 0 or the
// first error, and cleans up in both cases.
int pass_a_segment() {
  constexpr std::size_t kBytes = 1 << 16;
  std::uint64_t id = 0;
  std::uint64_t from = 0;
  int file = -1;
  int received = -1;
  int by_proc = -1;
  void* own = nullptr;
  void* peer = nullptr;
  Mailbox box;
  int error = random_bytes(&id, sizeof id);
  if (error == 0) error = memfd_open("stretto-fault", kBytes, &file);
  if (error == 0) error = memfd_reserve(file, 0, kBytes);
  if (error == 0) error = map_shared(file, kBytes, Access::read_write, &own);
  if (error == 0) error = peer_descriptor_open(process_id(), file, &by_proc);
  if (error == 0) error = mailbox_open(id, &box);
  if (error == 0) error = mailbox_send(box, id, id, file);
  if (error == 0) error = mailbox_receive(box, &from, &received);
  if (error == 0) error = map_shared(received, kBytes, Access::read_only, &peer);
  EXPECT_TRUE(error != 0 || from == id);
  unmap(peer, kBytes);
  unmap(own, kBytes);
  mailbox_close(&box);
  close_descriptor(received);
  close_descriptor(by_proc);
  close_descriptor(file);
  return error;
}

TEST_F(SysFault, EveryCallInTurn) {
  ASSERT_EQ(pass_a_segment(), 0);
  const std::uint64_t calls = fault::calls();
  EXPECT_EQ(fault::strikes(), 0u);
  EXPECT_GE(calls, 12u);  // nine calls, some with more than one point
  const int before = open_descriptors();
  for (std::uint64_t n = 1; n <= calls; ++n) {
    const int error = n % 2 ? ENOSPC : EPERM;
    fault::fail_nth(n, error);
    EXPECT_EQ(pass_a_segment(), error) << "call " << n << " of " << calls;
    EXPECT_EQ(fault::strikes(), 1u);
    EXPECT_EQ(open_descriptors(), before) << "call " << n;
  }
  fault::fail_nth(calls + 1, EIO);
  EXPECT_EQ(pass_a_segment(), 0);
  EXPECT_EQ(fault::strikes(), 0u);
}

TEST_F(SysFault, ResultsStayAsTheyWere) {
  ASSERT_TRUE(
      fault::arm("memfd_open.seal:*:EPERM,map_shared:*:ENOMEM,mailbox_open.bind:*:EACCES,"
                 "peer_descriptor_open:*:EACCES,mailbox_receive:*:EIO"));
  int fd = -5;
  EXPECT_EQ(memfd_open("stretto-fault", 4096, &fd), EPERM);
  EXPECT_EQ(peer_descriptor_open(process_id(), 0, &fd), EACCES);
  std::uint64_t from = 6;
  Mailbox box;
  EXPECT_EQ(mailbox_open(1, &box), EACCES);
  EXPECT_EQ(mailbox_receive(box, &from, &fd), EIO);
  void* address = &fd;
  EXPECT_EQ(map_shared(0, 4096, Access::read_only, &address), ENOMEM);
  EXPECT_EQ(fd, -5);
  EXPECT_EQ(from, 6u);
  EXPECT_EQ(box.socket, -1);
  EXPECT_EQ(address, &fd);
  EXPECT_EQ(fault::strikes(), 5u);
}

TEST_F(SysFault, WhatHasNoErrorSaysUnknown) {
  ASSERT_TRUE(fault::arm(
      "start_time:*:EACCES,host_id:*:EACCES,pid_namespace:*:EACCES,usable_cpus:*:EPERM,cgroup_quota:*:EACCES"));
  EXPECT_EQ(start_time(process_id()), 0u);
  EXPECT_EQ(host_id(), 0u);
  EXPECT_EQ(pid_namespace(), 0u);
  const Cpus cpus = usable_cpus();
  EXPECT_EQ(cpus.count, cpus.online);
  EXPECT_EQ(cpus.quota, std::numeric_limits<double>::infinity());
}

TEST_F(SysFault, RulesCountTheirOwnPoint) {
  ASSERT_TRUE(fault::arm("random_bytes:2:EIO"));
  int byte = 0;
  EXPECT_NE(start_time(process_id()), 0u);
  EXPECT_EQ(random_bytes(&byte, 1), 0);
  EXPECT_NE(start_time(process_id()), 0u);
  EXPECT_EQ(random_bytes(&byte, 1), EIO);
  EXPECT_EQ(random_bytes(&byte, 1), 0);
}

TEST_F(SysFault, MalformedRulesAreRefused) {
  for (const char* text : {"x", "x:1", "x:1:", "x:0:EIO", "x:-:EIO", "x:1:EWHAT", ":1:EIO", "x:1:EIO:2", "x:1x:EIO"}) {
    EXPECT_FALSE(fault::arm(text)) << text;
    fault::disarm();
  }
  EXPECT_FALSE(fault::arm((std::string(60, 'x') + ":1:EIO").c_str()));
  fault::disarm();
  std::string many;
  for (int i = 0; i < 17; ++i) many += "x:1:EIO,";
  EXPECT_FALSE(fault::arm(many.c_str()));
}

TEST_F(SysFault, OneThreadGetsTheNthCall) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  fault::fail_nth(kThreads * kEach / 2, EIO);
  std::vector<int> failures(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&failures, t] {
      for (int i = 0; i < kEach; ++i) {
        int byte = 0;
        failures[t] += random_bytes(&byte, 1) == EIO;
      }
    });
  }
  int total = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads[t].join();
    total += failures[t];
  }
  EXPECT_EQ(total, 1);
  EXPECT_EQ(fault::calls(), static_cast<std::uint64_t>(kThreads * kEach));
}

// A process reads the environment at its first strike, so these tests run in a program of their
// own.
struct FreshProgram : testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using FaultEnvironmentDeathTest = FreshProgram;

TEST_F(FaultEnvironmentDeathTest, IsObeyed) {
  EXPECT_EXIT(
      {
        setenv("STRETTO_FAULT", "random_bytes:2:ENOSPC,memfd_open:*:EMFILE", 1);
        int byte = 0;
        int fd = -1;
        const bool good = random_bytes(&byte, 1) == 0 && random_bytes(&byte, 1) == ENOSPC &&
                          random_bytes(&byte, 1) == 0 && memfd_open("x", 4096, &fd) == EMFILE &&
                          memfd_open("x", 4096, &fd) == EMFILE;
        _exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(FaultEnvironmentDeathTest, MistypedStopsTheProgram) {
  EXPECT_DEATH(
      {
        setenv("STRETTO_FAULT", "random_bytes:second:ENOSPC", 1);
        int byte = 0;
        _exit(random_bytes(&byte, 1));
      },
      "STRETTO_FAULT is not point:n:ERRNO");
}

}  // namespace
