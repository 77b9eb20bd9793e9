// SPDX-License-Identifier: BSD-3-Clause
// A peer that knows the handshake writes nonsense: torn frames, frames with some bytes changed, and
// good frames at the wrong time. Every message ends, and nothing is written outside its memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "threads/drivers.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

constexpr std::size_t kBytes = 200'000, kMargin = 4096;

bulk::Head any_head(std::mt19937_64& random) {
  constexpr bulk::Kind kKinds[] = {bulk::Kind::ask,   bulk::Kind::hurry, bulk::Kind::data,
                                   bulk::Kind::eager, bulk::Kind::ack,   bulk::Kind::fail};
  bulk::Head head;
  head.kind = kKinds[random() % 6];
  head.key = {1 + random() % 2, 1, static_cast<std::uint32_t>(random() % 5)};
  switch (head.kind) {
    case bulk::Kind::ask: head.bytes = random() % (bulk::kMostRanges + 1); break;
    case bulk::Kind::hurry:
    case bulk::Kind::data:
      head.total = kBytes - kMargin - head.key.index % 4 + (random() % 16 == 0 ? 1 : 0);
      head.offset = random() % 2 == 0 ? 0 : random() % head.total;
      head.bytes = 1 + random() % std::min<std::uint64_t>(head.total - head.offset, bulk::kPieceBytes);
      if (head.kind == bulk::Kind::hurry) head.total = 0;
      break;
    case bulk::Kind::eager: head.bytes = head.total = random() % (bulk::kEagerBytes + 1); break;
    case bulk::Kind::ack: break;
    case bulk::Kind::fail:
      head.key = {1 + random() % 3, 0, 0};
      head.offset = transport::Reason{Status::peer_lost, 3}.word();
      break;
  }
  return head;
}

std::vector<char> nonsense(std::mt19937_64& random) {
  std::vector<char> words;
  for (auto frames = random() % 12; frames-- > 0;) {
    const bulk::Head head = any_head(random);
    const std::size_t at = words.size();
    words.resize(at + bulk::Head::kBytes + head.payload_bytes());
    head.write(words.data() + at);
    char* const payload = words.data() + at + bulk::Head::kBytes;
    for (std::size_t i = 0; i < head.payload_bytes(); ++i) payload[i] = static_cast<char>(i % 16 < 3 ? random() : 0);
    if (random() % 3 != 0) continue;
    for (int hit = 0; hit < 2; ++hit)
      words[at + random() % bulk::Head::kBytes] = static_cast<char>(random() >> (random() % 8));
  }
  if (random() % 3 == 0) words.resize(random() % (words.size() + 1));
  return words;
}

TEST(LongMessagesFuzz, NonsenseEndsWithoutHarm) {
  std::mt19937_64 random(20);
  unsigned fine = 0, failed = 0;
  for (int trial = 0; trial < 400; ++trial) {
    RawPeer peer;
    std::vector<char> memory(4 * kBytes + kMargin, '-');
    std::vector<bulk::Handle> handles;
    for (std::uint32_t i = 0; i < 4; ++i) {
      handles.push_back(nullptr);
      char* const place = memory.data() + i * kBytes + kMargin;
      const std::size_t bytes = kBytes - kMargin - i;
      if (random() % 3 == 0)
        ASSERT_EQ(peer.driver().post_send(1, {1, 1, i}, place, bytes, &handles.back()), Status::ok);
      else
        ASSERT_EQ(peer.driver().post_recv(1, {1, 1, i}, place, bytes, &handles.back()), Status::ok);
    }
    peer.accept();
    const std::vector<char> words = nonsense(random);
    for (std::size_t at = 0; at < words.size();) {
      const std::size_t some =
          std::min<std::size_t>(words.size() - at, 1 + random() % (random() % 4 == 0 ? 60 : 70'000));
      if (!peer.say(words.data() + at, some)) break;
      at += some;
    }
    peer.close();
    for (const bulk::Handle handle : handles)
      ++(wait_and_complete(peer.driver(), handle) == Status::ok ? fine : failed);
    peer.driver().stop();
    for (std::size_t i = 0; i <= 4; ++i) {
      const auto* const margin = memory.data() + i * kBytes;
      ASSERT_TRUE(std::all_of(margin, margin + kMargin, [](char each) { return each == '-'; })) << "trial " << trial;
    }
  }
  EXPECT_GT(fine, 5u);
  EXPECT_GT(failed, 100u);
}

// What is read is what was written, or is refused.
TEST(LongMessagesFuzz, Heads) {
  std::mt19937_64 random(21);
  unsigned good = 0;
  for (int trial = 0; trial < 200'000; ++trial) {
    char words[bulk::Head::kBytes], again[bulk::Head::kBytes];
    bulk::Head head = any_head(random);
    head.write(words);
    ASSERT_TRUE(head.read(words));
    for (int hit = 0; hit < trial % 3; ++hit) words[random() % sizeof words] = static_cast<char>(random());
    if (!head.read(words)) continue;
    ++good;
    head.write(again);
    ASSERT_EQ(std::memcmp(words, again, sizeof words), 0);
    ASSERT_LE(head.payload_bytes(), bulk::kPieceBytes);
  }
  EXPECT_GT(good, 60'000u);
}

}  // namespace
