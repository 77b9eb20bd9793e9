// SPDX-License-Identifier: BSD-3-Clause
// Sockets of fabricated placements: each slice has one rank in each socket.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "topo/sockets.hpp"

namespace stretto::test {
namespace {

using topo::Binding;
using topo::Sockets;

std::vector<Binding> bound(int ranks, const std::function<int(int)>& socket_of) {
  std::vector<Binding> all;
  for (int r = 0; r < ranks; ++r) all.push_back({{Binding::kNowhere, Binding::kNowhere, socket_of(r)}});
  return all;
}

std::vector<Sockets> sockets_of(const std::vector<Binding>& bindings) {
  std::vector<Sockets> all(bindings.size());
  for (std::size_t r = 0; r < all.size(); ++r)
    EXPECT_TRUE(all[r].find(static_cast<int>(r), static_cast<int>(all.size()), bindings.data()));
  return all;
}

void judge(const std::vector<Sockets>& all, const std::vector<Binding>& bindings) {
  std::multiset<int> with_slices;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const Sockets& mine = all[r];
    EXPECT_EQ(mine.slices(), all[0].slices());
    EXPECT_EQ(mine.keep_rank_order(), all[0].keep_rank_order());
    EXPECT_EQ(mine.inside()[static_cast<std::size_t>(mine.index())], static_cast<int>(r));
    EXPECT_TRUE(std::is_sorted(mine.inside().begin(), mine.inside().end()));
    EXPECT_EQ(mine.across().empty(), mine.index() >= mine.slices());
    if (mine.across().empty()) continue;
    EXPECT_EQ(mine.across()[static_cast<std::size_t>(mine.socket())], static_cast<int>(r));
    std::set<std::int32_t> sockets;
    for (const int other : mine.across()) {
      EXPECT_EQ(all[static_cast<std::size_t>(other)].index(), mine.index());
      sockets.insert(bindings[static_cast<std::size_t>(other)].domains[2]);
    }
    EXPECT_EQ(sockets.size(), mine.across().size());
    with_slices.insert(mine.index());
  }
  for (int slice = 0; slice < all[0].slices(); ++slice)
    EXPECT_EQ(with_slices.count(slice), all[0].across().size()) << slice;
}

TEST(Sockets, HaveASliceForEachRankOfTheSmallest) {
  for (const int ranks : {5, 8, 33, 64}) {
    const auto two = bound(ranks, [&](int r) { return r < ranks * 2 / 5 ? 7 : 1; });
    const auto all = sockets_of(two);
    judge(all, two);
    EXPECT_EQ(all[0].slices(), ranks * 2 / 5);
    EXPECT_TRUE(all[0].keep_rank_order());
  }
}

TEST(Sockets, MayHaveRanksDealtToThem) {
  const auto dealt = bound(17, [](int r) { return r * 2 % 3; });
  const auto all = sockets_of(dealt);
  judge(all, dealt);
  EXPECT_EQ(all[0].slices(), 5);
  EXPECT_EQ(all[0].across().size(), 3u);
  EXPECT_FALSE(all[0].keep_rank_order());
}

TEST(Sockets, AreNoneIfARankIsNotBoundOrOneSocketHasFew) {
  const auto none = [](const std::vector<Binding>& bindings) {
    Sockets sockets;
    return !sockets.find(0, static_cast<int>(bindings.size()), bindings.data());
  };
  EXPECT_TRUE(none(bound(8, [](int) { return 0; })));
  EXPECT_TRUE(none(bound(8, [](int r) { return r == 7 ? Binding::kNowhere : r % 2; })));
  EXPECT_TRUE(none(bound(8, [](int r) { return r == 7 ? 1 : 0; })));
  EXPECT_TRUE(none(bound(40, [](int r) { return r / 2; })));
  EXPECT_TRUE(none(bound(8, [](int r) { return r < 2 ? 0 : 1; })));
}

}  // namespace
}  // namespace stretto::test
