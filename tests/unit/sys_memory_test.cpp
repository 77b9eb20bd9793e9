// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cstring>

#include "sys/sys.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

constexpr std::size_t kBytes = 1 << 20;

struct Memfd : testing::Test {
  int fd = -1;
  void SetUp() override { ASSERT_EQ(memfd_open("stretto-test", kBytes, &fd), 0); }
  void TearDown() override { close_descriptor(fd); }
};

TEST_F(Memfd, HasItsSizeAndNoPages) {
  struct stat status{};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), kBytes);
  EXPECT_EQ(status.st_blocks, 0);
}

TEST_F(Memfd, IsCloseOnExec) { EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC); }

TEST_F(Memfd, CannotBeShrunkNorSealedFurther) {
  EXPECT_EQ(ftruncate(fd, kBytes / 2), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
}

TEST_F(Memfd, ReserveBacksJustTheRange) {
  ASSERT_EQ(memfd_reserve(fd, 64 << 10, 128 << 10), 0);
  struct stat status{};
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(status.st_blocks * 512, 128 << 10);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), kBytes);
}

TEST_F(Memfd, MappingsShareBytes) {
  void* writer = nullptr;
  void* reader = nullptr;
  ASSERT_EQ(map_shared(fd, kBytes, Access::read_write, &writer), 0);
  ASSERT_EQ(map_shared(fd, kBytes, Access::read_only, &reader), 0);
  ASSERT_NE(writer, reader);
  std::memcpy(static_cast<char*>(writer) + 4096, "voice", 6);
  EXPECT_STREQ(static_cast<char*>(reader) + 4096, "voice");
  unmap(reader, kBytes);
  unmap(writer, kBytes);
}

TEST_F(Memfd, ALongerMappingOfTheSamePagesNeedsNoDescriptor) {
  void *writer = nullptr, *part = nullptr, *whole = nullptr;
  ASSERT_EQ(map_shared(fd, kBytes, Access::read_write, &writer), 0);
  ASSERT_EQ(map_shared(fd, kBytes / 2, Access::read_only, &part), 0);
  ASSERT_EQ(map_more(part, kBytes, &whole), 0);
  EXPECT_NE(part, whole);
  static_cast<char*>(writer)[100] = 1;
  static_cast<char*>(writer)[kBytes - 1] = 2;
  EXPECT_EQ(static_cast<char*>(part)[100], 1);
  EXPECT_EQ(static_cast<char*>(whole)[100], 1);
  EXPECT_EQ(static_cast<char*>(whole)[kBytes - 1], 2);
  EXPECT_NE(mprotect(whole, kBytes, PROT_READ), -1);
  unmap(part, kBytes / 2);
  EXPECT_EQ(static_cast<char*>(whole)[100], 1);
  unmap(whole, kBytes);
  unmap(writer, kBytes);
}

TEST(SysMemory, AddressSpaceIsTheLimitsRest) {
  EXPECT_EQ(in_child([] {
              const AddressSpace before = address_space();
              if (before.limit != ~std::uint64_t{0}) return 0;  // already limited: the test can see nothing
              const rlimit limit{std::uint64_t{1} << 40, std::uint64_t{1} << 40};
              setrlimit(RLIMIT_AS, &limit);
              const AddressSpace space = address_space();
              const bool right =
                  space.limit == limit.rlim_cur && space.left < space.limit && before.left == ~std::uint64_t{0};
              return right ? 0 : 1;
            }),
            0);
}

TEST_F(Memfd, ReadOnlyMappingCannotBeMadeWritableThroughAReadOnlyDescriptor) {
  int peer = -1;
  ASSERT_EQ(peer_descriptor_open(process_id(), fd, &peer), 0);
  void* mapped = nullptr;
  EXPECT_EQ(map_shared(peer, kBytes, Access::read_write, &mapped), EACCES);
  EXPECT_EQ(mapped, nullptr);
  ASSERT_EQ(map_shared(peer, kBytes, Access::read_only, &mapped), 0);
  EXPECT_NE(mprotect(mapped, kBytes, PROT_READ | PROT_WRITE), 0);
  unmap(mapped, kBytes);
  close_descriptor(peer);
}

TEST(SysMemory, FailuresAreReturnedAndLeaveResultsAndErrnoAlone) {
  errno = 4711;
  void* address = reinterpret_cast<void*>(1);
  EXPECT_EQ(map_shared(-1, 4096, Access::read_only, &address), EBADF);
  EXPECT_EQ(address, reinterpret_cast<void*>(1));
  EXPECT_EQ(memfd_reserve(-1, 0, 4096), EBADF);
  int fd = 77;
  EXPECT_EQ(peer_descriptor_open(process_id(), 1 << 20, &fd), ENOENT);
  EXPECT_EQ(fd, 77);
  EXPECT_EQ(errno, 4711);
}

TEST(SysMemory, ReservingSomethingElseSaysSo) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_NE(memfd_reserve(ends[1], 0, 4096), 0);
  close_descriptor(ends[0]);
  close_descriptor(ends[1]);
}

// ftruncate past the limit would raise SIGXFSZ, which ends a program that does not expect it.
TEST(SysMemory, FileSizeLimitIsAnErrorAndNoSignal) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{kBytes / 2, kBytes / 2};
              setrlimit(RLIMIT_FSIZE, &limit);
              int fd = -1;
              return memfd_open("stretto-test", kBytes, &fd) == EFBIG && fd == -1 ? 0 : 1;
            }),
            0);
}

// On some kernels a profiler's timer interrupts long fallocate calls. On others, such as 6.18, it
// does not, and this test shows little.
TEST(SysMemory, ReserveGetsDoneUnderAStormOfSignals) {
  EXPECT_EQ(in_child([] {
              struct sigaction action{};
              action.sa_handler = [](int) {};
              sigaction(SIGALRM, &action, nullptr);
              const itimerval storm{{0, 500}, {0, 500}};
              setitimer(ITIMER_REAL, &storm, nullptr);
              constexpr std::size_t kLarge = 48 << 20;
              int fd = -1;
              if (memfd_open("stretto-test", kLarge, &fd) != 0) return 1;
              return memfd_reserve(fd, 0, kLarge) == 0 ? 0 : 2;
            }),
            0);
}

TEST(SysMemory, RandomBytesDiffer) {
  std::uint64_t a[4] = {};
  std::uint64_t b[4] = {};
  ASSERT_EQ(random_bytes(a, sizeof a), 0);
  ASSERT_EQ(random_bytes(b, sizeof b), 0);
  EXPECT_NE(std::memcmp(a, b, sizeof a), 0);
}

}  // namespace
