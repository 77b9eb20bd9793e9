// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "sys/sys.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

TEST(SysIdentity, StartTimeTellsProcessesApart) {
  const std::uint64_t own = start_time(process_id());
  EXPECT_NE(own, 0u);
  EXPECT_EQ(own, start_time(process_id()));
  EXPECT_EQ(start_time(1 << 30), 0u);
  EXPECT_LT(start_time(1), own);
}

// /proc/<pid>/stat quotes the name without escaping it.
TEST(SysIdentity, StartTimeSurvivesANameWithParenthesesAndBlanks) {
  EXPECT_EQ(in_child([] {
              const std::uint64_t before = start_time(process_id());
              prctl(PR_SET_NAME, ") S 1 (x 9");
              return before != 0 && start_time(process_id()) == before ? 0 : 1;
            }),
            0);
}

// As after a chroot, or with a /proc that hides others: a process without a readable file may live.
TEST(SysIdentity, AProcessWithoutAFileInProcIsNotGone) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may chroot";
  const int parent = process_id();
  const auto ended = [] {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  };
  EXPECT_TRUE(process_gone(ended(), 0));
  char empty[] = "/tmp/empty-XXXXXX";
  ASSERT_NE(mkdtemp(empty), nullptr);
  EXPECT_EQ(in_child([&] {
              if (chroot(empty) != 0) return 1;
              if (process_gone(parent, 0) || process_gone(parent, 1)) return 2;
              return process_gone(ended(), 0) ? 0 : 3;
            }),
            0);
  rmdir(empty);
}

// kill(0) and kill(-1) reach living processes.
TEST(SysIdentity, NumbersThatAreNoProcessesAreGone) {
  for (const int pid : {0, -1, -process_id()}) EXPECT_TRUE(process_gone(pid, 1)) << pid;
}

// Identities of processes keep 32 bits of the ticks since the machine has started. After 497 days
// there are more ticks.
TEST(SysIdentity, ALongUptimeKillsNobody) {
  const std::uint64_t own = start_time(process_id());
  EXPECT_FALSE(process_gone(process_id(), own + (std::uint64_t{1} << 32)));
  EXPECT_TRUE(process_gone(process_id(), own + 1));
}

TEST(SysIdentity, HostAndNamespaceAreTheSameInAChild) {
  const std::uint64_t host = host_id();
  const std::uint64_t space = pid_namespace();
  ASSERT_NE(host, 0u);
  ASSERT_NE(space, 0u);
  EXPECT_EQ(in_child([&] { return host_id() == host && pid_namespace() == space ? 0 : 1; }), 0);
}

TEST(SysIdentity, UserIsTheEffectiveOne) { EXPECT_EQ(user_id(), geteuid()); }

TEST(SysCpus, FollowAffinity) {
  const Cpus all = usable_cpus();
  EXPECT_GE(all.count, 1u);
  EXPECT_LE(all.count, all.online);
  EXPECT_GT(all.quota, 0.0);
  EXPECT_EQ(all.mask_hash, usable_cpus().mask_hash);
  if (all.count < 2) GTEST_SKIP() << "one processor";
  EXPECT_EQ(in_child([&] {
              cpu_set_t allowed;
              sched_getaffinity(0, sizeof allowed, &allowed);
              cpu_set_t one;
              CPU_ZERO(&one);
              for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
                if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
              }
              sched_setaffinity(0, sizeof one, &one);
              const Cpus bound = usable_cpus();
              return bound.count == 1 && bound.mask_hash != all.mask_hash && bound.online == all.online ? 0 : 1;
            }),
            0);
}

TEST(SysClock, GoesForwardAndNaps) {
  const std::uint64_t begin = now_ns();
  nap_ns(2'000'000);
  const std::uint64_t end = now_ns();
  EXPECT_GE(end - begin, 2'000'000u);
  EXPECT_LT(end - begin, 2'000'000'000u);
}

}  // namespace
