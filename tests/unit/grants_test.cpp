// SPDX-License-Identifier: BSD-3-Clause
// What a receiver grants to its sources: everything in the end, and little at once.
#include "transport/bulk/grants.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>

namespace stretto::transport::bulk {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

struct Sources {
  Grants grants;
  std::deque<Message> messages;
  std::uint64_t now = 1;

  Message& add(std::uint64_t bytes, std::uint32_t position) {
    return add(bytes, position, static_cast<std::uint32_t>(messages.size()));
  }
  Message& add(std::uint64_t bytes, std::uint32_t position, std::uint32_t host) {
    Message& made = messages.emplace_back();
    made.bytes = bytes;
    made.position = position;
    made.host = host;
    EXPECT_TRUE(grants.add(&made));
    return made;
  }
  // This much of what was granted comes.
  void come(Message& message, std::uint64_t bytes) {
    now += 1'000'000;
    grants.arrived(&message, bytes, now);
    message.arrived_bytes += bytes;
  }
  void give() {
    grants.give([](Message* message) { message->grant_due = 0; });
  }
  [[nodiscard]] std::uint64_t under_way() const {
    return std::accumulate(messages.begin(), messages.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Message& each) { return sum + each.under_way; });
  }
};

TEST(Grants, ShortMessagesComeAtOnceAndTooLongOnesAreSeen) {
  Sources s;
  EXPECT_EQ(s.add(10'000, 0).granted, 10'000u);
  EXPECT_EQ(s.add(0, 1).granted, 4096u);  // so that a sender with data says so
}

TEST(Grants, NothingMoreBeforeASourceHasSent) {
  Sources s;
  Message& one = s.add(8 * kMiB, 0);
  s.give();
  EXPECT_EQ(one.granted, 4096u);
  s.come(one, 100);
  s.give();
  EXPECT_GT(one.granted, 4096u);
}

TEST(Grants, AllIsGrantedInTheEndAndLittleIsUnderWay) {
  Sources s;
  for (std::uint32_t i = 0; i < 5; ++i) s.come(s.add(4 * kMiB, i), 1);
  std::uint64_t most = 0;
  for (bool more = true; more;) {
    s.give();
    most = std::max(most, s.under_way());
    more = false;
    for (Message& message : s.messages) {
      const std::uint64_t bytes = std::min<std::uint64_t>(message.under_way, 50'000);
      if (bytes != 0) s.come(message, bytes);
      more = more || bytes != 0;
    }
  }
  for (const Message& message : s.messages) EXPECT_EQ(message.granted, message.bytes);
  EXPECT_LT(most, 2 * kMiB);
  EXPECT_EQ(s.under_way(), 0u);
}

TEST(Grants, TheFirstGetsMostAndNobodyNothing) {
  Sources s;
  for (std::uint32_t i = 0; i < 3; ++i) s.come(s.add(64 * kMiB, 2 - i), 1);  // the last one is the first
  s.give();
  EXPECT_GT(s.messages[2].under_way, s.messages[0].under_way + s.messages[1].under_way);
  EXPECT_GT(s.messages[0].under_way, 0u);
  EXPECT_GT(s.messages[1].under_way, 0u);
  s.grants.hurry(&s.messages[0]);
  for (Message& message : s.messages) s.come(message, message.under_way);
  s.give();
  EXPECT_GT(s.messages[0].under_way, s.messages[1].under_way + s.messages[2].under_way);
}

TEST(Grants, OneSourceOfEachHostSends) {
  Sources s;
  for (std::uint32_t i = 0; i < 6; ++i) s.come(s.add(kMiB, i, i % 3), 1);
  const auto granted = [&](int i) { return s.messages[static_cast<std::size_t>(i)].granted; };
  const std::uint64_t asked = granted(5);
  s.give();
  for (int i = 0; i < 3; ++i) EXPECT_GT(granted(i), asked) << i;
  for (int i = 3; i < 6; ++i) EXPECT_EQ(granted(i), asked) << i;
  while (granted(1) != kMiB) {
    s.come(s.messages[1], s.messages[1].under_way);
    s.give();
  }
  s.give();
  EXPECT_GT(granted(4), asked);
  EXPECT_EQ(granted(3), asked);
  s.grants.hurry(&s.messages[5]);
  s.give();
  EXPECT_GT(granted(5), asked);
}

TEST(Grants, ASourceAloneGetsMoreThanTheFirstOfMany) {
  Sources alone, many;
  for (std::uint32_t i = 0; i < 2; ++i) many.come(many.add(64 * kMiB, i), 1);
  alone.come(alone.add(64 * kMiB, 0), 1);
  alone.give();
  many.give();
  EXPECT_GT(alone.messages[0].under_way, 4 * many.messages[0].under_way);
}

// 4 KiB that come late are no slow link.
TEST(Grants, WhatTheSystemKeepsFollowsTheRate) {
  Sources s;
  Message& fast = s.add(64 * kMiB, 0);
  const std::uint32_t before = s.grants.kept_bytes();
  for (int i = 0; i < 20; ++i) {
    s.give();
    s.come(fast, std::min<std::uint64_t>(fast.under_way, kMiB));
  }
  const std::uint32_t risen = s.grants.kept_bytes();
  EXPECT_GT(risen, before);
  s.now += 50'000'000;
  s.come(fast, 100);
  EXPECT_GE(s.grants.kept_bytes(), risen / 2);
}

TEST(Grants, WhatHasEndedMakesRoom) {
  Sources s;
  for (std::uint32_t i = 0; i < 2; ++i) s.come(s.add(64 * kMiB, i), 1);
  s.give();
  const std::uint64_t before = s.messages[1].granted;
  s.grants.remove(&s.messages[0]);
  s.give();
  EXPECT_GT(s.messages[1].granted, before);
}

// A piece of a pipeline: its source may have it at any time, and leaves others their part.
TEST(Grants, APieceOfAPipelineIsGrantedWithItsAsk) {
  Sources sources;
  for (std::uint32_t i = 0; i < 4; ++i) {
    Message& made = sources.messages.emplace_back();
    made.bytes = kMiB;
    made.all_at_once = true;
    ASSERT_TRUE(sources.grants.add(&made));
    EXPECT_EQ(made.granted, kMiB);
  }
  EXPECT_EQ(sources.under_way(), 4 * 4096u);
  Message& other = sources.add(kMiB, 9);
  sources.come(other, other.granted);
  sources.give();
  EXPECT_GT(other.granted, 64u << 10);
}

}  // namespace
}  // namespace stretto::transport::bulk
