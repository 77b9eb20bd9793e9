// SPDX-License-Identifier: BSD-3-Clause
// Quotas from captured and made-up trees (tests/fixtures/cgroup), and from the live machine where
// it allows that.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "sys/sys.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

std::string fixture(const std::string& name) {
  return std::string(STRETTO_SOURCE_DIR "/tests/fixtures/cgroup/") + name;
}

struct Case {
  const char* name;
  double quota;
};
constexpr double kNone = INFINITY;

struct CgroupFixture : testing::TestWithParam<Case> {};

TEST_P(CgroupFixture, Quota) {
  ASSERT_TRUE(std::filesystem::exists(fixture(GetParam().name) + "/proc/self/mountinfo"));
  EXPECT_EQ(cgroup_quota(fixture(GetParam().name).c_str()), GetParam().quota);
}

INSTANTIATE_TEST_SUITE_P(Sys, CgroupFixture,
                         testing::Values(Case{"v2_own_limit", 0.5},      // cpu.max at the group itself
                                         Case{"v2_nested", 1.5},         // the middle of three is the tightest
                                         Case{"v2_max", kNone},          // "max" everywhere
                                         Case{"v2_root_group", kNone},   // the root group has no cpu.max
                                         Case{"v2_namespace", 2.0},      // a container: "/" is its own group
                                         Case{"v2_group_gone", 3.0},     // the named group is not shown, its parent is
                                         Case{"v2_outside", 4.0},        // "/../x": moved in from outside
                                         Case{"v1_own_limit", 0.5},      //
                                         Case{"v1_unlimited", kNone},    // -1 everywhere
                                         Case{"v1_nested", 0.25},        // limit two levels up
                                         Case{"v1_docker", 1.5},         // the mount shows /docker/<id> as its root
                                         Case{"v1_cpuset_only", kNone},  // "cpuset" and "cpuacct" are not "cpu"
                                         Case{"hybrid", 0.75},           // cpu on v1, v2 without controllers
                                         Case{"both", 0.5},              // limits in both: the tighter holds
                                         Case{"escaped_mount", 0.5},     // blank in the mount point: \040
                                         Case{"long_lines", 0.5}),       // 6 KB of overlay options before the entry
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SysCgroup, NothingReadableIsUnlimited) { EXPECT_EQ(cgroup_quota("/nonexistent"), kNone); }

// The live machine: a group of the test's own with half a processor, and a looser group inside it.
TEST(SysCgroup, LiveV1) {
  namespace fs = std::filesystem;
  const fs::path outer = "/sys/fs/cgroup/cpu/stretto-test-" + std::to_string(getpid());
  const fs::path inner = outer / "inner";
  std::error_code failed;
  if (!fs::create_directories(inner, failed)) GTEST_SKIP() << "cannot make a v1 cpu group here";
  const auto put = [](const fs::path& file, const std::string& text) { std::ofstream(file) << text << std::endl; };
  put(outer / "cpu.cfs_period_us", "100000");
  put(outer / "cpu.cfs_quota_us", "50000");
  put(inner / "cpu.cfs_quota_us", "20000");
  put(outer / "cpu.cfs_quota_us", "50000");
  const int code = in_child([&] {
    put(inner / "cgroup.procs", std::to_string(getpid()));
    const double both = usable_cpus().quota;
    put(inner / "cpu.cfs_quota_us", "-1");
    const double outer_only = usable_cpus().quota;
    return std::abs(both - 0.2) < 1e-9 && std::abs(outer_only - 0.5) < 1e-9 ? 0 : 1;
  });
  fs::remove(inner, failed);
  fs::remove(outer, failed);
  EXPECT_EQ(code, 0);
}

}  // namespace
