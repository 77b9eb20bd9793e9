// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace stretto;

namespace {

struct Log : testing::Test {
  void SetUp() override { log_set_level(LogLevel::debug); }
  void TearDown() override {
    log_set_level(LogLevel::warn);
    log_set_rank(-1);
  }
};

template <typename Body>
std::string standard_error(Body body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) found.push_back(line);
  return found;
}

TEST_F(Log, LineHasPrefixLevelAndRank) {
  EXPECT_EQ(standard_error([] { log_line(LogLevel::info, "%d of %s", 3, "four"); }), "stretto: info: 3 of four\n");
  log_set_rank(5);
  EXPECT_EQ(standard_error([] { log_line(LogLevel::debug, "x"); }), "stretto: rank 5: debug: x\n");
}

TEST_F(Log, LevelsAboveTheChosenOneAreSilent) {
  log_set_level(LogLevel::info);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::info));
  EXPECT_FALSE(log_enabled(LogLevel::debug));
  EXPECT_EQ(standard_error([] { log_line(LogLevel::debug, "no"); }), "");
}

// Runs `body` with `end` as standard error.
template <typename Body>
void with_standard_error(int end, Body body) {
  const int kept = dup(STDERR_FILENO);
  dup2(end, STDERR_FILENO);
  body();
  dup2(kept, STDERR_FILENO);
  close(kept);
}

TEST_F(Log, DrainWaitsForAReaderOfAPipeOrASocket) {
  for (const bool pipes : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipes ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    std::atomic<bool> read_all{false};
    bool drained_after = false;
    with_standard_error(ends[1], [&] {
      log_line(LogLevel::info, "the last word");
      std::thread reader([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        char text[100];
        read_all = true;
        EXPECT_GT(read(ends[0], text, sizeof text), 0);
      });
      log_drain();
      drained_after = read_all;
      reader.join();
    });
    EXPECT_TRUE(drained_after) << (pipes ? "pipe" : "socket");
    close(ends[0]);
    close(ends[1]);
  }
}

TEST_F(Log, DrainDoesNotWaitForAFile) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::chrono::duration<double> took{};
  with_standard_error(fileno(file), [&] {
    log_line(LogLevel::info, "the last word");
    lseek(STDERR_FILENO, 0, SEEK_SET);  // so that something seems to lie there to be read
    const auto began = std::chrono::steady_clock::now();
    log_drain();
    took = std::chrono::steady_clock::now() - began;
  });
  EXPECT_LT(took.count(), 1.5);
  std::fclose(file);
}

TEST_F(Log, TooLongIsCutAndStillOneLine) {
  const std::string longer(5000, 'y');
  const std::string out = standard_error([&] { log_line(LogLevel::info, "%s", longer.c_str()); });
  EXPECT_GT(out.size(), 1000u);
  EXPECT_LT(out.size(), 1200u);
  EXPECT_EQ(out.find('\n'), out.size() - 1);
}

TEST_F(Log, ControlCharactersAreDefused) {
  EXPECT_EQ(standard_error([] { log_line(LogLevel::info, "a\x1b[31m\nb\tc"); }), "stretto: info: a?[31m?b\tc\n");
}

TEST_F(Log, LeavesErrnoAlone) {
  errno = 4711;
  standard_error([] { log_line(LogLevel::info, "x"); });
  const int after = errno;
  EXPECT_EQ(after, 4711);
}

TEST_F(Log, ErrorsAreLimitedAndTheRestIsCounted) {
  constexpr int kErrors = 500;
  sleep(1);  // the limit is per second of the clock: earlier lines must not count
  const auto first = lines(standard_error([] {
    for (int i = 0; i < kErrors; ++i) log_line(LogLevel::error, "again");
  }));
  EXPECT_GE(first.size(), static_cast<std::size_t>(kLogBurst));
  EXPECT_LE(first.size(), static_cast<std::size_t>(2 * kLogBurst));  // the second may have turned in between
  sleep(1);
  const std::string next = standard_error([] { log_line(LogLevel::error, "later"); });
  int counted = 0;
  for (const std::string& line : first) {
    int part = 0;
    if (std::sscanf(line.c_str(), "stretto: error: (%d lines left out)", &part) == 1) counted += part;
  }
  int rest = 0;
  ASSERT_EQ(std::sscanf(next.c_str(), "stretto: error: (%d lines left out) later", &rest), 1) << next;
  EXPECT_EQ(static_cast<int>(first.size()) + counted + rest, kErrors);
}

TEST_F(Log, InfoIsNotLimited) {
  const auto out = lines(standard_error([] {
    for (int i = 0; i < 200; ++i) log_line(LogLevel::info, "asked for");
  }));
  EXPECT_EQ(out.size(), 200u);
}

TEST_F(Log, ThreadsDoNotMixLines) {
  const auto out = lines(standard_error([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 50; ++i)
          log_line(LogLevel::info, "%s", std::string(200, static_cast<char>('a' + t)).c_str());
      });
    }
    for (auto& thread : threads) thread.join();
  }));
  ASSERT_EQ(out.size(), 200u);
  for (const std::string& line : out) {
    ASSERT_EQ(line.size(), 15u + 200u) << line;
    EXPECT_EQ(line.find_first_not_of(line.back(), 15), std::string::npos) << line;
  }
}

}  // namespace
