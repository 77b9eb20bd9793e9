// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <thread>
#include <vector>

#include "sys/poller.hpp"
#include "sys/sys.hpp"
#include "unit/sys_support.hpp"

using namespace stretto::sys;

namespace {

constexpr std::uint64_t kSoonNs = 20'000'000, kLongNs = 10'000'000'000;

struct Found {
  int error = -1, count = -1;
  bool woken = false;
  Ready ready[kMostReady];
};

struct SysPoller : testing::Test {
  Poller poller;
  int before = open_descriptors();
  void SetUp() override { ASSERT_EQ(poller_open(&poller), 0); }
  void TearDown() override {
    poller_close(&poller);
    EXPECT_EQ(open_descriptors(), before);
  }
  Found wait(std::uint64_t timeout_ns) {
    Found found;
    found.error = poller_wait(poller, timeout_ns, found.ready, &found.count, &found.woken);
    return found;
  }
  void expect_nothing(std::uint64_t timeout_ns) {
    const Found found = wait(timeout_ns);
    EXPECT_EQ(found.error, 0);
    EXPECT_EQ(found.count, 0);
    EXPECT_FALSE(found.woken);
  }
  void expect_one(std::uint64_t tag, bool readable, bool writable) {
    const Found found = wait(kLongNs);
    EXPECT_EQ(found.error, 0);
    ASSERT_EQ(found.count, 1);
    EXPECT_EQ(found.ready[0].tag, tag);
    EXPECT_EQ(found.ready[0].readable, readable);
    EXPECT_EQ(found.ready[0].writable, writable);
  }
};

struct Pipe {
  int ends[2];
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0); }
  ~Pipe() {
    for (const int end : ends) close_descriptor(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void put(const char* text) const { EXPECT_GT(write(ends[1], text, std::char_traits<char>::length(text)), 0); }
};

TEST_F(SysPoller, TheTimeIsKept) {
  for (const std::uint64_t timeout : {std::uint64_t{0}, std::uint64_t{300'000}, kSoonNs}) {
    const std::uint64_t begin = now_ns();
    expect_nothing(timeout);
    EXPECT_GE(now_ns() - begin, timeout);
  }
}

TEST_F(SysPoller, TagsComeBack) {
  const Pipe a, b;
  ASSERT_EQ(poller_add(poller, a.ends[0], {true, false}, 1u << 31), 0);
  ASSERT_EQ(poller_add(poller, b.ends[0], {true, false}, std::uint64_t{5} << 40), 0);
  expect_nothing(0);
  b.put("x");
  expect_one(std::uint64_t{5} << 40, true, false);
  a.put("x");
  const Found both = wait(kLongNs);
  ASSERT_EQ(both.count, 2);
  EXPECT_EQ((std::set<std::uint64_t>{both.ready[0].tag, both.ready[1].tag}),
            (std::set<std::uint64_t>{1u << 31, std::uint64_t{5} << 40}));
}

TEST_F(SysPoller, InterestsChange) {
  const Pipe pipe;
  const int end = pipe.ends[1];
  ASSERT_EQ(poller_add(poller, end, {}, 1), 0);
  expect_nothing(0);
  EXPECT_EQ(poller_add(poller, end, {}, 1), EEXIST);
  EXPECT_EQ(poller_modify(poller, end, {false, true}, 2), 0);
  expect_one(2, false, true);
  EXPECT_EQ(poller_modify(poller, end, {}, 2), 0);
  expect_nothing(0);
  EXPECT_EQ(poller_remove(poller, end), 0);
  EXPECT_EQ(poller_remove(poller, end), ENOENT);
  EXPECT_EQ(poller_modify(poller, end, {}, 2), ENOENT);
}

TEST_F(SysPoller, AnEndIsToldAsBoth) {
  Pipe pipe;
  ASSERT_EQ(poller_add(poller, pipe.ends[0], {}, 3), 0);
  close_descriptor(pipe.ends[1]);
  pipe.ends[1] = -1;
  expect_one(3, true, true);
}

TEST_F(SysPoller, MoreThanFitsComesNextTime) {
  constexpr int kPipes = 50;
  const std::vector<Pipe> pipes(kPipes);
  std::set<std::uint64_t> tags;
  for (int i = 0; i < kPipes; ++i) {
    ASSERT_EQ(poller_add(poller, pipes[i].ends[0], {true, false}, static_cast<std::uint64_t>(i)), 0);
    pipes[i].put("x");
  }
  for (int round = 0; round < 4; ++round) {
    const Found found = wait(kLongNs);
    for (int i = 0; i < found.count; ++i) tags.insert(found.ready[i].tag);
  }
  EXPECT_EQ(tags.size(), 50u);
}

TEST_F(SysPoller, AnotherThreadWakes) {
  std::thread other([&] {
    nap_ns(kSoonNs);
    EXPECT_EQ(poller_wake(poller), 0);
  });
  const Found found = wait(kForever);
  other.join();
  EXPECT_EQ(found.error, 0);
  EXPECT_EQ(found.count, 0);
  EXPECT_TRUE(found.woken);
  expect_nothing(0);
}

TEST_F(SysPoller, ManyWakeOnceAndBeforehand) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(poller_wake(poller), 0);
    });
  for (auto& each : threads) each.join();
  EXPECT_TRUE(wait(kLongNs).woken);
  expect_nothing(0);
}

TEST_F(SysPoller, AFullCountIsNoError) {
  const std::uint64_t most = ~std::uint64_t{0} - 1;
  ASSERT_EQ(write(poller.waker, &most, sizeof most), 8);
  EXPECT_EQ(poller_wake(poller), 0);
  EXPECT_TRUE(wait(0).woken);
}

TEST_F(SysPoller, SignalsDoNotShortenTheTime) {
  EXPECT_EQ(in_child([&] {
              struct sigaction action{};
              action.sa_handler = [](int) {};
              sigaction(SIGALRM, &action, nullptr);
              const itimerval storm{{0, 1000}, {0, 1000}};
              setitimer(ITIMER_REAL, &storm, nullptr);
              const std::uint64_t begin = now_ns();
              const Found found = wait(kSoonNs);
              const bool right = found.error == 0 && found.count == 0 && now_ns() - begin >= kSoonNs;
              return right ? 0 : 1;
            }),
            0);
}

TEST_F(SysPoller, ErrorsLeaveResultsAndErrnoAlone) {
  Found found;
  errno = 4711;
  EXPECT_EQ(poller_wait(Poller{}, 0, found.ready, &found.count, &found.woken), EBADF);
  EXPECT_EQ(found.count, -1);
  EXPECT_EQ(poller_add(poller, -1, {true, false}, 1), EBADF);
  EXPECT_EQ(poller_add(poller, 0, {true, false}, ~std::uint64_t{0}), EINVAL);
  EXPECT_EQ(poller_wake(Poller{}), EBADF);
  EXPECT_EQ(stream_readable_from(-1, 1, 1), EBADF);
  EXPECT_EQ(errno, 4711);
  const int plain = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(poller_add(poller, plain, {true, false}, 1), EPERM);
  EXPECT_EQ(stream_readable_from(plain, 1, 1), ENOTSOCK);
  close_descriptor(plain);
}

// ---- streams ----

struct Connected : SysPoller {
  int from = -1, to = -1;
  void SetUp() override {
    SysPoller::SetUp();
    HostAddress loopback;
    loopback.ip = htonl(INADDR_LOOPBACK);
    std::uint16_t port = 0;
    int listener = -1;
    ASSERT_EQ(stream_listen(loopback, &listener, &port), 0);
    ASSERT_EQ(stream_connect(loopback, port, &from), 0);
    while (stream_accept(listener, &to) == EAGAIN) nap_ns(1'000'000);
    close_descriptor(listener);
    ASSERT_EQ(poller_add(poller, to, {true, false}, 9), 0);
  }
  void TearDown() override {
    close_descriptor(from);
    close_descriptor(to);
    SysPoller::TearDown();
  }
  void send(std::size_t bytes) const {
    const std::vector<char> data(bytes, 'x');
    ASSERT_EQ(write(from, data.data(), bytes), static_cast<ssize_t>(bytes));
  }
};

TEST_F(Connected, ReadableFromTheMarkOn) {
  ASSERT_EQ(stream_readable_from(to, 8192, 100'000), 0);
  send(8191);
  expect_nothing(kSoonNs);
  send(1);
  expect_one(9, true, false);
}

// A mark above what is left would hang here.
TEST_F(Connected, TheMarkIsNeverAboveWhatIsLeft) {
  ASSERT_EQ(stream_readable_from(to, 8192, 100), 0);
  send(99);
  expect_nothing(kSoonNs);
  send(1);
  expect_one(9, true, false);
  ASSERT_EQ(stream_readable_from(to, 8192, 0), 0);
  expect_one(9, true, false);
}

TEST_F(Connected, AnEndIsReadableBelowTheMark) {
  ASSERT_EQ(stream_readable_from(to, 8192, 100'000), 0);
  send(10);
  expect_nothing(kSoonNs);
  stream_end(from);
  expect_one(9, true, false);
}

TEST_F(Connected, AStreamGoesBeforeOthersOrBehind) {
  for (const auto& [urgency, wanted] : {std::pair{Urgency::high, 6}, {Urgency::low, 2}}) {
    int priority = 0;
    socklen_t length = sizeof priority;
    ASSERT_EQ(stream_urgency(from, urgency), 0);
    ASSERT_EQ(getsockopt(from, SOL_SOCKET, SO_PRIORITY, &priority, &length), 0);
    EXPECT_EQ(priority, wanted);
  }
}

TEST_F(Connected, TheKernelKeepsNoMoreThanItIsToldTo) {
  constexpr std::size_t kMark = 64 << 10;
  ASSERT_EQ(stream_connected(from), 0);  // it does not hold short messages back
  ASSERT_EQ(poller_remove(poller, to), 0);
  ASSERT_EQ(stream_keeps(from, kMark), 0);
  ASSERT_EQ(poller_add(poller, from, {false, true}, 4), 0);
  expect_one(4, false, true);
  // Nobody reads: what the peer's buffer does not take stays here.
  const std::vector<char> data(4096, 'x');
  std::size_t sent = 0;
  while (wait(kSoonNs).count == 1) {
    const ssize_t got = write(from, data.data(), data.size());
    if (got < 0) break;
    sent += static_cast<std::size_t>(got);
  }
  int kept = 0;
  EXPECT_EQ(ioctl(from, SIOCOUTQ, &kept), 0);
  EXPECT_GE(static_cast<std::size_t>(kept), kMark / 2);
  EXPECT_LE(static_cast<std::size_t>(kept), 2 * kMark);
  EXPECT_GT(sent, kMark);
  expect_nothing(0);
  std::vector<char> back(sent);
  for (std::size_t read_so_far = 0; read_so_far < sent;) {
    const ssize_t got = read(to, back.data(), back.size());
    if (got > 0) read_so_far += static_cast<std::size_t>(got);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
  }
  expect_one(4, false, true);
}

}  // namespace
