// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/short_calls.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::mpi {
namespace {

constexpr std::uint64_t kLong = 1000;

// Ranks that make the same calls, of which each knows its own length.
struct Members {
  std::vector<ShortCalls> ranks;
  int agreements = 0;

  explicit Members(int size) : ranks(static_cast<std::size_t>(size)) {}
  // Whether the call goes with overlap. All ranks must say the same.
  bool call(const std::vector<std::uint64_t>& bytes) {
    std::size_t due = 0;
    std::uint64_t longest = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      due += ranks[r].begins(bytes[r]) ? 1 : 0;
      longest = std::max(longest, ranks[r].longest());
    }
    EXPECT_TRUE(due == 0 || due == ranks.size()) << "some wait for the others";
    if (due != 0) ++agreements;
    std::size_t with = 0;
    for (ShortCalls& rank : ranks) {
      if (due != 0) rank.agree(longest < kLong);
      with += rank.are_short() ? 0 : 1;
    }
    EXPECT_TRUE(with == 0 || with == ranks.size()) << "ranks go different ways";
    return with != 0;
  }
};

TEST(ShortCalls, GoWithoutOverlapIfTheyAreShortOnAllRanks) {
  Members members(3);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(members.call({1, 999, 0}));
  Members others(3);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(others.call({1, 1000, 0})) << "one rank's are long";
}

TEST(ShortCalls, CallsThatGetLongerAreSeenAtTheNextAgreement) {
  Members members(2);
  (void)members.call({1, 1});
  int short_ones = 0;
  while (!members.call({1, 5000}) && short_ones < 1000) ++short_ones;
  EXPECT_EQ(short_ones, 8);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(members.call({1, 1}));
  EXPECT_FALSE(members.call({1, 1}));
}

TEST(ShortCalls, AgreeSeldom) {
  Members members(5);
  for (int i = 0; i < 10'000; ++i) (void)members.call({1, 1, 1, 1, 1});
  EXPECT_LE(members.agreements, 45);
}

}  // namespace
}  // namespace stretto::mpi
