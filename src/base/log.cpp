// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "sys/sys.hpp"

namespace stretto {
namespace {

constexpr std::size_t kLineBytes = 1100;
constexpr int kDrainLooks = 2000;  // a millisecond apart
constexpr std::uint64_t kLookNs = 1'000'000;
constexpr std::uint64_t kPassedOnNs = 50'000'000;
constexpr const char* kNames[] = {"error", "warning", "info", "debug"};

constinit std::atomic<LogLevel> g_shown{LogLevel::warn};
constinit std::atomic<int> g_own_rank{-1};
constinit std::atomic<std::int64_t> g_second{-1};  // the second whose lines are counted
constinit std::atomic<int> g_lines_in_second{0};
constinit std::atomic<int> g_left_out{0};

std::int64_t seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

// Threads that race at the turn of a second may let a line or two too many through. That does no
// harm.
bool within_limit() {
  const std::int64_t now = seconds();
  if (g_second.exchange(now, std::memory_order_relaxed) != now) g_lines_in_second.store(0, std::memory_order_relaxed);
  if (g_lines_in_second.fetch_add(1, std::memory_order_relaxed) < kLogBurst) return true;
  g_left_out.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// A line under construction. What does not fit is cut. One byte stays free for the newline.
struct Line {
  char text[kLineBytes];
  std::size_t length = 0;

  [[gnu::format(printf, 2, 0)]] void add(const char* format, va_list arguments) {
    const std::size_t room = kLineBytes - 1 - length;
    const int wanted = std::vsnprintf(text + length, room, format, arguments);
    if (wanted <= 0) return;
    const auto got = static_cast<std::size_t>(wanted);
    length += got < room ? got : room - 1;
  }
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(format, arguments);
    va_end(arguments);
  }
  void begin(const char* name) {
    const int rank = g_own_rank.load(std::memory_order_relaxed);
    add("stretto: ");
    if (rank >= 0) add("rank %d: ", rank);
    add("%s: ", name);
  }
  // A value from the environment must not be able to control the terminal.
  void clean() {
    for (std::size_t i = 0; i < length; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      if ((byte < 0x20 && byte != '\t') || byte == 0x7f) text[i] = '?';
    }
  }
  void emit() {
    text[length++] = '\n';
    sys::error_write(text, length);
  }
};

}  // namespace

void log_set_level(LogLevel level) { g_shown.store(level, std::memory_order_relaxed); }
void log_set_rank(int rank) { g_own_rank.store(rank, std::memory_order_relaxed); }
bool log_enabled(LogLevel level) { return level <= g_shown.load(std::memory_order_relaxed); }

void log_explain(const char* format, ...) {
  const int kept = errno;
  Line line;
  line.begin("explain");
  va_list arguments;
  va_start(arguments, format);
  line.add(format, arguments);
  va_end(arguments);
  line.clean();
  line.emit();
  errno = kept;
}

void log_line(LogLevel level, const char* format, ...) {
  if (!log_enabled(level) || (level <= LogLevel::warn && !within_limit())) return;
  const int kept = errno;
  Line line;
  line.begin(kNames[static_cast<int>(level)]);
  if (level <= LogLevel::warn) {
    if (const int missing = g_left_out.exchange(0, std::memory_order_relaxed))
      line.add("(%d lines left out) ", missing);
  }
  va_list arguments;
  va_start(arguments, format);
  line.add(format, arguments);
  va_end(arguments);
  line.clean();
  line.emit();
  errno = kept;
}

void log_drain() {
  for (int look = 0; look < kDrainLooks && sys::error_untaken() != 0; ++look) sys::nap_ns(kLookNs);
  sys::nap_ns(kPassedOnNs);
}

void log_end_process() {
  log_drain();
  sys::end_by_abort();
}

}  // namespace stretto
