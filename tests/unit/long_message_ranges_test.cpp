// SPDX-License-Identifier: BSD-3-Clause
// Parts of a message against a list of its bytes.
#include <gtest/gtest.h>

#include <random>

#include "transport/bulk/ranges.hpp"

namespace stretto::transport::bulk {
namespace {

constexpr std::uint64_t kTotal = 200;

Range any(std::mt19937& random) { return {random() % kTotal, 1 + random() % 60}; }

// Each byte goes once, and what was brought forward last goes first.
TEST(LongMessageRanges, AQueueGivesEachByteOnce) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    RangeQueue queue;
    std::vector<int> gone(kTotal, 0);
    Range order[4];
    for (Range& range : order) range = any(random);
    ASSERT_TRUE(queue.start(kTotal, order, random() % 5));
    Range urgent;
    while (!queue.empty()) {
      if (random() % 4 == 0) queue.bring_forward(urgent = any(random));
      bool any_urgent_left = false;
      for (std::uint64_t at = urgent.offset; at < std::min(urgent.end(), kTotal); ++at)
        any_urgent_left |= gone[at] == 0;
      const Range taken = queue.take(1 + random() % 50);
      ASSERT_NE(taken.bytes, 0u);
      ASSERT_LE(taken.end(), kTotal);
      if (any_urgent_left) ASSERT_EQ(taken.common(urgent), taken);
      for (std::uint64_t at = taken.offset; at < taken.end(); ++at) ASSERT_EQ(gone[at]++, 0);
    }
    ASSERT_EQ(std::count(gone.begin(), gone.end(), 1), static_cast<std::ptrdiff_t>(kTotal));
  }
}

TEST(LongMessageRanges, TheOrderIsAsked) {
  RangeQueue queue;
  const Range order[] = {{90, 20}, {10, 5}, {95, 10}};
  ASSERT_TRUE(queue.start(100, order, 3));
  for (const Range& expected : {Range{90, 5}, {95, 5}, {10, 5}, {0, 10}, {15, 75}})
    EXPECT_EQ(queue.take(1000), expected);
  EXPECT_TRUE(queue.empty());
  ASSERT_TRUE(queue.start(0, order, 3));
  EXPECT_TRUE(queue.empty());
}

TEST(LongMessageRanges, ASetKnowsWhatIsThere) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 2000; ++trial) {
    RangeSet set;
    std::vector<char> there(kTotal + 60, 0);
    const auto count = [&](const Range& range) {
      return std::count(there.begin() + static_cast<std::ptrdiff_t>(range.offset),
                        there.begin() + static_cast<std::ptrdiff_t>(range.end()), 1);
    };
    for (int i = 0; i < 20; ++i) {
      const Range range = any(random), asked = any(random);
      ASSERT_EQ(set.overlaps(range), count(range) != 0);
      if (!set.overlaps(range)) {
        ASSERT_TRUE(set.add(range));
        std::fill_n(there.begin() + static_cast<std::ptrdiff_t>(range.offset), range.bytes, 1);
      }
      ASSERT_EQ(set.contains(asked), count(asked) == static_cast<std::ptrdiff_t>(asked.bytes));
    }
  }
}

}  // namespace
}  // namespace stretto::transport::bulk
