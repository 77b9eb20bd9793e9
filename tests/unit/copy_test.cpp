// SPDX-License-Identifier: BSD-3-Clause
// Copies of every length, from and to every place in a line. All bytes arrive, and nothing beside
// them is written.
#include "base/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace stretto {
namespace {

constexpr std::size_t kGuard = 128, kLeast = kTuning.lines_least, kMost = kTuning.lines_most;

TEST(Copy, MovesTheseBytesAndNoOthers) {
  std::vector<char> source(kMost + 2 * kGuard);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 131 + i / 256);
  const std::vector<char> untouched(source.size(), '\x5a');
  std::vector<char> target = untouched;
  for (const std::size_t from : {0, 1, 24, 63}) {
    for (const std::size_t to : {0, 1, 40, 64}) {
      for (std::size_t bytes = 0; bytes <= kMost + 3; bytes += bytes < kLeast + 3 * 64 || bytes > kMost - 65 ? 1 : 7) {
        copy(target.data() + to, source.data() + from, bytes);
        const auto begin = target.begin() + static_cast<std::ptrdiff_t>(to);
        const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
        ASSERT_TRUE(std::equal(begin, end, source.begin() + static_cast<std::ptrdiff_t>(from)))
            << bytes << " from " << from << " to " << to;
        std::fill(begin, end, '\x5a');
        ASSERT_EQ(target, untouched) << bytes << " from " << from << " to " << to;
      }
    }
  }
}

TEST(Copy, PastTheCachesWritesWholeLinesAndNothingBehindThem) {
  constexpr std::size_t kLine = 64, kLongest = 9 * kLine;
  std::vector<char> source(kLongest + kGuard);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 131 + i / 256);
  alignas(kLine) static char target[kLongest + kGuard];
  for (const std::size_t from : {0, 1, 24, 63}) {
    for (std::size_t bytes = 0; bytes <= kLongest; ++bytes) {
      std::memset(target, 0x5a, sizeof target);
      copy_past(target, source.data() + from, bytes);
      ASSERT_EQ(std::memcmp(target, source.data() + from, bytes), 0) << bytes << " from " << from;
      for (std::size_t at = (bytes + kLine - 1) / kLine * kLine; at < sizeof target; ++at)
        ASSERT_EQ(target[at], 0x5a) << bytes;
    }
  }
}

TEST(Copy, PastTheCachesToAnyMemoryLeavesWhatLiesAroundIt) {
  constexpr std::size_t kLine = 64, kLongest = 5 * kLine;
  std::vector<char> source(kLongest + kGuard);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 131 + i / 256);
  alignas(kLine) static char target[kGuard + kLongest + kGuard];
  for (const std::size_t from : {0, 1, 63}) {
    for (const std::size_t to : {0, 1, 8, 31, 63}) {
      for (std::size_t bytes = 0; bytes <= kLongest; ++bytes) {
        std::memset(target, 0x5a, sizeof target);
        copy_past_to_any(target + to, source.data() + from, bytes);
        ASSERT_EQ(std::memcmp(target + to, source.data() + from, bytes), 0)
            << bytes << " from " << from << " to " << to;
        for (std::size_t at = 0; at < sizeof target; ++at) {
          if (at < to || at >= to + bytes) ASSERT_EQ(target[at], 0x5a) << bytes << " from " << from << " to " << to;
        }
      }
    }
  }
}

}  // namespace
}  // namespace stretto
