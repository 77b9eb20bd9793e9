// SPDX-License-Identifier: BSD-3-Clause
// The two streams of a connection (transport/bulk/connection.hpp): words and what somebody waits
// for pass data that the system has, in any order, and each stream ends by itself.
#include <gtest/gtest.h>

#include "threads/drawn_messages.hpp"

namespace stretto::test {
namespace {

constexpr std::uint32_t kSmallBuffer = 64 << 10;
constexpr std::size_t kBytes = 4 * kMiB;

// A peer that has asked for the first bytes of a long message, then for all of it. Of the track by
// which the rest comes it reads nothing.
struct Stuck {
  RawPeer peer{kSmallBuffer};
  std::vector<char> sent = pattern(kBytes, 1);
  Handle handle = nullptr;

  Stuck() {
    EXPECT_EQ(peer.driver().post_send(1, {1, 1, 0}, sent.data(), kBytes, &handle), Status::ok);
    peer.accept();
    EXPECT_TRUE(peer.say({bulk::Kind::ask, {1, 1, 0}, bulk::kUrgentBytes, 0, 0}));
    EXPECT_TRUE(peer.say({bulk::Kind::grant, {1, 1, 0}, 0, kBytes, 0}));
    bulk::Head head;
    for (std::uint64_t got = 0; got < bulk::kUrgentBytes; got += head.bytes) {
      EXPECT_TRUE(peer.hear(&head, RawPeer::kWords));
      EXPECT_EQ(head.kind, bulk::Kind::data);
      EXPECT_TRUE(peer.hear(memory.data(), head.bytes));
    }
    for (std::size_t before = 0, now = 1; now != before; sys::nap_ns(20'000'000)) {
      before = now;
      EXPECT_EQ(sys::stream_waiting(peer.stream(RawPeer::kBulk), &now), 0);
    }
  }
  ~Stuck() {
    peer.close();
    (void)wait_and_complete(peer.driver(), handle);
  }
  bulk::Head next_word() {
    bulk::Head head;
    EXPECT_TRUE(peer.hear(&head, RawPeer::kWords));
    EXPECT_TRUE(peer.hear(memory.data(), head.payload_bytes()));
    return head;
  }
  std::vector<char> memory = std::vector<char>(bulk::kPieceBytes);
};

TEST(Tracks, AFollowingMessageShowsItsFirstBytes) {
  Stuck s;
  const std::vector<char> next = pattern(kBytes, 2);
  Handle handle = nullptr;
  ASSERT_EQ(s.peer.driver().post_send(1, {1, 2, 0}, next.data(), kBytes, &handle), Status::ok);
  ASSERT_TRUE(s.peer.say({bulk::Kind::ask, {1, 2, 0}, 8192, 0, 0}));
  const bulk::Head head = s.next_word();
  EXPECT_EQ(head.kind, bulk::Kind::data);
  EXPECT_EQ(head.key, (Key{1, 2, 0}));
  EXPECT_EQ(head.bytes, 8192u);
  EXPECT_TRUE(std::equal(next.begin(), next.begin() + 8192, s.memory.begin()));
  s.peer.close();
  EXPECT_EQ(wait_and_complete(s.peer.driver(), handle), Status::peer_lost);
}

// What is granted as a whole is a piece of a pipeline. It waits for its turn, but for what the
// receiver has named.
TEST(Tracks, OfAPieceOnlyWhatIsNamedPasses) {
  constexpr Range kNamed{kMiB, 4096};
  Stuck s;
  const std::vector<char> next = pattern(kBytes, 2);
  Handle handle = nullptr;
  ASSERT_EQ(s.peer.driver().post_send(1, {1, 2, 0}, next.data(), kBytes, &handle), Status::ok);
  ASSERT_TRUE(s.peer.say({bulk::Kind::ask, {1, 2, 0}, kBytes, 1, 0}));
  ASSERT_TRUE(s.peer.say(reinterpret_cast<const char*>(&kNamed), sizeof kNamed));
  const bulk::Head head = s.next_word();
  EXPECT_EQ(head.key, (Key{1, 2, 0}));
  EXPECT_EQ(head.offset, kNamed.offset);
  EXPECT_EQ(head.bytes, kNamed.bytes);
  s.peer.close();
  EXPECT_EQ(wait_and_complete(s.peer.driver(), handle), Status::peer_lost);
}

TEST(Tracks, AsksAndShortMessagesPass) {
  Stuck s;
  std::vector<char> place(kBytes);
  Handle in = nullptr, out = nullptr;
  ASSERT_EQ(s.peer.driver().post_recv(1, {1, 2, 0}, place.data(), kBytes, &in), Status::ok);
  EXPECT_EQ(s.next_word().kind, bulk::Kind::ask);
  ASSERT_EQ(s.peer.driver().post_send(1, {1, 2, 1}, "short", 5, &out), Status::ok);
  EXPECT_EQ(s.next_word().kind, bulk::Kind::eager);
  EXPECT_EQ(wait_and_complete(s.peer.driver(), out), Status::ok);
  s.peer.close();
  EXPECT_EQ(wait_and_complete(s.peer.driver(), in), Status::peer_lost);
}

// Of a hurried range, 64 KiB go beside what is queued, and then the rest before other data.
TEST(Tracks, AHurriedRangePasses) {
  constexpr Range kHurried{3 * kMiB, 100'000};
  Stuck s;
  ASSERT_TRUE(s.peer.say({bulk::Kind::hurry, {1, 1, 0}, kHurried.offset, kHurried.bytes, 0}));
  for (std::uint64_t at = kHurried.offset; at < kHurried.offset + bulk::kUrgentBytes;) {
    const bulk::Head head = s.next_word();
    ASSERT_EQ(head.kind, bulk::Kind::data);
    ASSERT_EQ(head.offset, at);
    EXPECT_TRUE(std::equal(s.memory.begin(), s.memory.begin() + static_cast<std::ptrdiff_t>(head.bytes),
                           s.sent.begin() + static_cast<std::ptrdiff_t>(at)));
    at += head.bytes;
  }
}

// The pieces of one message come by both, half a piece by the one and then half by the other.
TEST(Tracks, PiecesOfOneMessageComeByBoth) {
  RawPeer peer;
  const std::vector<char> sent = pattern(60'000, 3);
  std::vector<char> place(sent.size());
  Handle handle = nullptr;
  ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, place.data(), place.size(), &handle), Status::ok);
  peer.accept();
  bulk::Head ask;
  ASSERT_TRUE(peer.hear(&ask));
  for (const int track : {RawPeer::kBulk, RawPeer::kWords}) {
    const std::uint64_t offset = track == RawPeer::kWords ? 0 : 30'000;
    ASSERT_TRUE(peer.say({bulk::Kind::data, {1, 1, 0}, offset, 30'000, 60'000}, track));
    ASSERT_TRUE(peer.say(sent.data() + offset, 20'000, track));
  }
  sys::nap_ns(2'000'000);
  for (const int track : {RawPeer::kWords, RawPeer::kBulk}) {
    const std::uint64_t offset = track == RawPeer::kWords ? 20'000 : 50'000;
    EXPECT_FALSE(bulk::Driver::done(handle));
    ASSERT_TRUE(peer.say(sent.data() + offset, 10'000, track));
  }
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::ok);
  EXPECT_TRUE(place == sent);
}

// The same bytes by both: such a peer is left before anything is complete.
TEST(Tracks, PiecesThatOverlapAreRefused) {
  RawPeer peer;
  std::vector<char> place(60'000);
  Handle handle = nullptr;
  ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, place.data(), place.size(), &handle), Status::ok);
  peer.accept();
  for (const int track : {RawPeer::kWords, RawPeer::kBulk})
    ASSERT_TRUE(
        peer.say({bulk::Kind::data, {1, 1, 0}, track == RawPeer::kWords ? 0u : 20'000u, 30'000, 60'000}, track));
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::peer_failed);
}

// What is still to come by the other is received.
TEST(Tracks, OneEndsBeforeTheOther) {
  for (const int last : {RawPeer::kWords, RawPeer::kBulk}) {
    RawPeer peer;
    const std::vector<char> sent = pattern(50'000, 5);
    std::vector<char> place(sent.size());
    Handle handle = nullptr, never = nullptr;
    ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, place.data(), place.size(), &handle), Status::ok);
    ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 1}, place.data(), 1, &never), Status::ok);
    peer.accept();
    bulk::Head ask;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(peer.hear(&ask));
    sys::stream_end(peer.stream(1 - last));
    while (!peer.has_ended(last)) sys::nap_ns(100'000);  // the driver has seen it
    ASSERT_TRUE(peer.say({bulk::Kind::data, {1, 1, 0}, 0, sent.size(), sent.size()}, last));
    ASSERT_TRUE(peer.say(sent.data(), sent.size(), last));
    EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::ok);
    EXPECT_TRUE(place == sent);
    EXPECT_FALSE(bulk::Driver::done(never));
    sys::stream_end(peer.stream(last));
    EXPECT_EQ(wait_and_complete(peer.driver(), never), Status::peer_lost);
  }
}

// A peer that has called for one stream and then dies.
TEST(Tracks, OneStreamIsNoConnection) {
  RawPeer peer;
  Handle handle = nullptr;
  char word = 0;
  peer.call();
  ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, &word, 1, &handle), Status::ok);
  sys::nap_ns(5'000'000);
  EXPECT_FALSE(bulk::Driver::done(handle));
  peer.close();
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::peer_lost);
}

}  // namespace
}  // namespace stretto::test
