// SPDX-License-Identifier: BSD-3-Clause
// Long messages over a driver's connections, over the loopback. Each byte arrives once and in its
// place, whatever the order and the pace of posting. Everybody hears of what fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "threads/drawn_messages.hpp"

namespace stretto::test {
namespace {

constexpr std::uint32_t kSmallBuffer = 64 << 10;  // with less, TCP waits for its timers on the loopback

void exchange_rounds(int ranks, std::uint32_t buffer_bytes, std::size_t bytes_per_rank) {
  DriverJob job(ranks, buffer_bytes);
  exchange_rounds(job, bytes_per_rank);
}

TEST(LongMessages, ArriveInAnyOrder) {
  for (const int ranks : {2, 3, 5, 8}) exchange_rounds(ranks, 0, kEffort * kMiB);
}

TEST(LongMessages, ArriveThroughSmallBuffers) {
  for (const int ranks : {2, 3, 5}) exchange_rounds(ranks, kSmallBuffer, kMiB / 2);
}

// Both sockets are full, and both sides go on receiving.
TEST(LongMessages, BothSidesSendAtOnce) {
  constexpr int kMessages = 4;
  constexpr std::size_t kBytes = 2 * kMiB;
  DriverJob job(2, kSmallBuffer);
  job.run([&](int rank, bulk::Driver& driver) {
    std::vector<std::vector<char>> out, in;
    std::vector<Handle> handles(2 * kMessages);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      out.push_back(pattern(kBytes, i + 10 * static_cast<unsigned>(rank)));
      in.emplace_back(kBytes);
      ASSERT_EQ(driver.post_send(1 - rank, {1, 1, i}, out[i].data(), kBytes, &handles[2 * i]), Status::ok);
      ASSERT_EQ(driver.post_recv(1 - rank, {1, 1, i}, in[i].data(), kBytes, &handles[2 * i + 1]), Status::ok);
    }
    for (const Handle handle : handles) EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    for (std::uint32_t i = 0; i < kMessages; ++i) EXPECT_TRUE(in[i] == pattern(kBytes, i + 10 * (1u - rank)));
  });
}

// More short messages than there are credits, wanted in the other order.
TEST(LongMessages, CreditsRunOut) {
  constexpr std::uint32_t kMessages = 5 * bulk::kCredit;
  DriverJob job(2);
  Group group(everybody(2));
  job.run([&](int rank, bulk::Driver& driver) {
    std::vector<std::vector<char>> data;
    std::vector<Handle> handles(2 * kMessages);
    for (std::uint32_t i = 0; i < kMessages; ++i) data.push_back(pattern(i % 7 * 2000, i));
    for (std::uint32_t i = 0; i < kMessages; ++i)
      ASSERT_EQ(driver.post_send(1 - rank, {1, 1, i}, data[i].data(), data[i].size(), &handles[i]), Status::ok);
    int ignored[2];
    group.allgather(rank, &rank, ignored, sizeof rank);
    sys::nap_ns(20'000'000);
    std::vector<std::vector<char>> places(kMessages);
    for (std::uint32_t i = kMessages; i-- > 0;) {
      places[i].resize(data[i].size());
      ASSERT_EQ(driver.post_recv(1 - rank, {1, 1, i}, places[i].data(), places[i].size(), &handles[kMessages + i]),
                Status::ok);
    }
    for (const Handle handle : handles) EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    for (std::uint32_t i = 0; i < kMessages; ++i) EXPECT_TRUE(places[i] == data[i]) << i;
  });
}

// The order in which ranges have arrived.
struct Arrivals {
  std::mutex mutex;
  std::vector<Range> ranges;
  [[nodiscard]] bulk::Listener listener() {
    return {this, 0, [](void* self, Handle, std::uint64_t offset, std::uint64_t bytes) {
              auto& arrivals = *static_cast<Arrivals*>(self);
              const std::lock_guard lock(arrivals.mutex);
              arrivals.ranges.push_back({offset, bytes});
            }};
  }
  // The ranges arrived before all others, one after the other.
  void expect_first(const std::vector<Range>& expected) {
    std::size_t at = 0;
    for (const Range& range : expected) {
      for (std::uint64_t offset = range.offset; offset < range.end(); ++at) {
        ASSERT_LT(at, ranges.size());
        ASSERT_EQ(ranges[at].offset, offset);
        offset = ranges[at].end();
        ASSERT_LE(offset, range.end());
      }
    }
  }
};

TEST(LongMessages, TheReceiverSaysTheOrder) {
  constexpr std::size_t kBytes = kMiB;
  DriverJob job(2, kSmallBuffer);
  Group group(everybody(2));
  job.run([&](int rank, bulk::Driver& driver) {
    const std::vector<char> sent = pattern(kBytes, 1);
    Handle handle = nullptr;
    int ignored[2];
    if (rank == 0) {
      group.allgather(rank, &rank, ignored, sizeof rank);
      sys::nap_ns(50'000'000);
      ASSERT_EQ(driver.post_send(1, {1, 1, 0}, sent.data(), kBytes, &handle), Status::ok);
      EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
      return;
    }
    std::vector<char> place(kBytes);
    Arrivals arrivals;
    const Range order[] = {{kBytes - 4096, 4096}, {0, 4096}, {100'000, 100'000}};
    ASSERT_EQ(driver.post_recv(0, {1, 1, 0}, place.data(), kBytes, &handle, arrivals.listener(), {order, 3, 0, {}}),
              Status::ok);
    group.allgather(rank, &rank, ignored, sizeof rank);
    driver.hurry(handle, 500'000, 70'000);
    EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    EXPECT_TRUE(place == sent);
    arrivals.expect_first(
        {{500'000, 70'000}, order[0], order[1], order[2], {4096, 100'000 - 4096}, {200'000, 300'000}});
  });
}

// The peer does not receive for a while. A range that it hurries then overtakes what the system has
// not taken yet.
TEST(LongMessages, AHurriedRangeOvertakes) {
  constexpr std::size_t kBytes = 16 * kMiB;
  constexpr Range kHurried{kBytes - 300'000, 100'000};
  RawPeer peer(kSmallBuffer);
  const std::vector<char> sent = pattern(kBytes, 1);
  Handle handle = nullptr;
  ASSERT_EQ(peer.driver().post_send(1, {1, 1, 0}, sent.data(), kBytes, &handle), Status::ok);
  peer.accept();
  ASSERT_TRUE(peer.say({bulk::Kind::ask, {1, 1, 0}, bulk::kMostBytes, 0, 0}));
  bulk::RangeSet arrived;
  std::vector<char> place(kBytes);
  for (std::size_t bytes = 0; bytes < kBytes;) {
    bulk::Head head;
    ASSERT_TRUE(peer.hear(&head));
    ASSERT_EQ(head.kind, bulk::Kind::data);
    ASSERT_TRUE(peer.hear(place.data() + head.offset, head.bytes));
    ASSERT_FALSE(arrived.overlaps({head.offset, head.bytes}));
    ASSERT_TRUE(arrived.add({head.offset, head.bytes}));
    if (bytes == 0) {
      ASSERT_TRUE(peer.say({bulk::Kind::hurry, {1, 1, 0}, kHurried.offset, kHurried.bytes, 0}));
      sys::nap_ns(100'000'000);
    }
    bytes += head.bytes;
    if (bytes > 8 * kMiB) ASSERT_TRUE(arrived.contains(kHurried));
  }
  EXPECT_TRUE(place == sent);
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::ok);
}

// Many pairs whose ranks call each other at the same time, or one of them late.
TEST(LongMessages, WhoeverCallsFirst) {
  for (int trial = 0; trial < 10 * kEffort; ++trial) {
    DriverJob job(3);
    job.run([&](int rank, bulk::Driver& driver) {
      if (trial % 3 != 0) sys::nap_ns(static_cast<std::uint64_t>((rank * 7 + trial) % 5) * 100'000);
      char out = static_cast<char>(rank), in[3] = {9, 9, 9};
      std::vector<Handle> handles;
      for (int peer = 0; peer < 3; ++peer) {
        if (peer == rank) continue;
        handles.resize(handles.size() + 2);
        ASSERT_EQ(driver.post_send(peer, {1, 1, 0}, &out, 1, &handles[handles.size() - 2]), Status::ok);
        ASSERT_EQ(driver.post_recv(peer, {1, 1, 0}, &in[peer], 1, &handles.back()), Status::ok);
      }
      for (const Handle handle : handles) EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
      for (int peer = 0; peer < 3; ++peer) EXPECT_EQ(in[peer], peer == rank ? 9 : peer);
    });
  }
}

TEST(LongMessages, AShorterMessageIsGood) {
  constexpr std::size_t kSent[] = {0, 5, bulk::kEagerBytes, 3 * kMiB / 2};
  DriverJob job(2);
  job.run([&](int rank, bulk::Driver& driver) {
    for (std::uint32_t i = 0; i < std::size(kSent); ++i) {
      const std::vector<char> sent = pattern(kSent[i], i);
      std::vector<char> place(2 * kMiB, '-');
      Handle handle = nullptr;
      if (rank == 0)
        ASSERT_EQ(driver.post_send(1, {1, 1, i}, sent.data(), sent.size(), &handle), Status::ok);
      else
        ASSERT_EQ(driver.post_recv(0, {1, 1, i}, place.data(), place.size(), &handle), Status::ok);
      EXPECT_EQ(wait_for(handle), Status::ok);
      if (rank == 1) {
        EXPECT_EQ(handle->total, kSent[i]);
        EXPECT_TRUE(std::equal(sent.begin(), sent.end(), place.begin()));
        EXPECT_EQ(place[kSent[i]], '-');
      }
      driver.complete(handle);
    }
  });
}

// The communicator has failed then, on both sides. Another one goes on.
TEST(LongMessages, ALongerMessageIsNot) {
  for (const std::size_t bytes : {std::size_t{100}, 10 * std::size_t{bulk::kEagerBytes}}) {
    DriverJob job(2);
    Group group(everybody(2));
    job.run([&](int rank, bulk::Driver& driver) {
      std::vector<char> data(bytes, '-');
      Handle handle = nullptr, other = nullptr, late = nullptr;
      int ignored[2];
      ASSERT_EQ(driver.post_recv(1 - rank, {1, 1, 9}, data.data(), 1, &other), Status::ok);
      if (rank == 0)
        ASSERT_EQ(driver.post_send(1, {1, 1, 0}, data.data(), bytes, &handle), Status::ok);
      else
        ASSERT_EQ(driver.post_recv(0, {1, 1, 0}, data.data(), bytes / 2, &handle), Status::ok);
      if (rank == 1) EXPECT_EQ(wait_for(handle), Status::truncated);
      EXPECT_EQ(wait_and_complete(driver, other), Status::peer_failed);
      (void)wait_and_complete(driver, handle);
      ASSERT_EQ(driver.post_recv(1 - rank, {1, 2, 0}, data.data(), 1, &late), Status::ok);
      EXPECT_EQ(wait_and_complete(driver, late), Status::peer_failed);
      group.allgather(rank, &rank, ignored, sizeof rank);
      char word = 'x';
      if (rank == 0)
        ASSERT_EQ(driver.post_send(1, {2, 1, 0}, &word, 1, &handle), Status::ok);
      else
        ASSERT_EQ(driver.post_recv(0, {2, 1, 0}, &word, 1, &handle), Status::ok);
      EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    });
  }
}

TEST(LongMessages, StopsWithMessagesOpen) {
  DriverJob job(3);
  job.run([&](int rank, bulk::Driver& driver) {
    constexpr std::size_t kBytes = kMiB;
    std::vector<char> data(kBytes), place(kBytes);
    std::vector<Handle> handles;
    for (int peer = 0; peer < 3; ++peer) {
      if (peer == rank) continue;
      handles.resize(handles.size() + 2);
      ASSERT_EQ(driver.post_recv(peer, {1, 1, 0}, place.data(), kBytes, &handles[handles.size() - 2]), Status::ok);
      ASSERT_EQ(driver.post_recv(peer, {1, 1, 1}, place.data(), kBytes, &handles.back()), Status::ok);
    }
    if (rank == 2) {
      sys::nap_ns(20'000'000);
      driver.stop();
      for (const Handle handle : handles) EXPECT_EQ(wait_and_complete(driver, handle), Status::unavailable);
      EXPECT_EQ(driver.post_send(0, {1, 2, 0}, data.data(), 1, &handles[0]), Status::unavailable);
      return;
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      if (handles[i]->peer != 2) continue;
      EXPECT_EQ(wait_for(handles[i]), Status::peer_lost);
      EXPECT_EQ(handles[i]->lost.rank, 2);
      EXPECT_EQ(handles[i]->lost.witness, rank);
      driver.complete(handles[i]);
    }
    Handle late = nullptr;
    ASSERT_EQ(driver.post_send(2, {1, 2, 0}, data.data(), 1, &late), Status::ok);
    EXPECT_EQ(wait_and_complete(driver, late), Status::peer_lost);
  });
}

// A rank that has made its last call may end long before its peer comes to the same call.
TEST(LongMessages, WhatCameBeforeThePeerEndedIsThere) {
  DriverJob job(2);
  const std::vector<char> sent = pattern(bulk::kEagerBytes, 3);
  job.run([&](int rank, bulk::Driver& driver) {
    Handle handle = nullptr;
    if (rank == 1) {
      ASSERT_EQ(driver.post_send(0, {1, 1, 0}, sent.data(), sent.size(), &handle), Status::ok);
      EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
      driver.stop();
      return;
    }
    std::vector<char> place(sent.size());
    ASSERT_EQ(driver.post_recv(1, {1, 2, 0}, place.data(), place.size(), &handle), Status::ok);
    EXPECT_EQ(wait_and_complete(driver, handle), Status::peer_lost);  // now this rank has seen the end
    ASSERT_EQ(driver.post_recv(1, {1, 1, 0}, place.data(), place.size(), &handle), Status::ok);
    EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    EXPECT_TRUE(place == sent);
    ASSERT_EQ(driver.post_recv(1, {1, 1, 1}, place.data(), place.size(), &handle), Status::ok);
    EXPECT_EQ(wait_and_complete(driver, handle), Status::peer_lost);
  });
}

TEST(LongMessages, APeerDiesInMidMessage) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{20}, std::size_t{30'000}}) {
    RawPeer peer;
    std::vector<char> place(kMiB), sent(kMiB);
    Handle in = nullptr, out = nullptr;
    ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, place.data(), kMiB, &in), Status::ok);
    ASSERT_EQ(peer.driver().post_send(1, {1, 1, 0}, sent.data(), kMiB, &out), Status::ok);
    peer.accept();
    bulk::Head ask;
    ASSERT_TRUE(peer.hear(&ask));
    EXPECT_EQ(ask.kind, bulk::Kind::ask);
    char head[bulk::Head::kBytes];
    bulk::Head{bulk::Kind::data, {1, 1, 0}, 0, 65536, kMiB}.write(head);
    ASSERT_TRUE(peer.say(head, std::min(bytes, sizeof head)));
    if (bytes > sizeof head) ASSERT_TRUE(peer.say(sent.data(), bytes - sizeof head));
    sys::nap_ns(1'000'000);
    peer.close();
    for (const Handle handle : {in, out}) {
      EXPECT_EQ(wait_for(handle), Status::peer_lost);
      EXPECT_EQ(handle->lost.rank, 1);
      peer.driver().complete(handle);
    }
  }
}

TEST(LongMessages, NobodyListens) {
  RawPeer nobody;
  transport::Endpoint closed{};
  {
    transport::Listeners listeners;
    const sys::HostAddress address{htonl(INADDR_LOOPBACK), ~0u};
    closed = listeners.open(&address, 1);
  }
  ASSERT_EQ(nobody.driver().introduce(2, closed), Status::ok);
  Handle handle = nullptr;
  char word = 0;
  ASSERT_EQ(nobody.driver().post_recv(2, {1, 1, 0}, &word, 1, &handle), Status::ok);
  EXPECT_EQ(wait_for(handle), Status::peer_lost);
  EXPECT_EQ(handle->lost.rank, 2);
  nobody.driver().complete(handle);
  ASSERT_EQ(nobody.driver().post_recv(7, {1, 1, 0}, &word, 1, &handle), Status::ok);  // a stranger
  EXPECT_EQ(wait_and_complete(nobody.driver(), handle), Status::invalid);
}

// In the middle of a frame: the memory is the program's at once. The peer gets the whole frame, and
// then the reason.
TEST(LongMessages, ASendIsCancelled) {
  RawPeer peer(kSmallBuffer);
  std::vector<char> sent = pattern(4 * kMiB, 1);
  Handle handle = nullptr;
  ASSERT_EQ(peer.driver().post_send(1, {7, 1, 0}, sent.data(), sent.size(), &handle), Status::ok);
  peer.accept();
  ASSERT_TRUE(peer.say({bulk::Kind::ask, {7, 1, 0}, bulk::kMostBytes, 0, 0}));
  bulk::Head head;
  ASSERT_TRUE(peer.hear(&head));
  EXPECT_EQ(head.kind, bulk::Kind::data);
  cancel(peer.driver(), handle);
  std::fill(sent.begin(), sent.end(), '-');
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::peer_failed);
  const std::vector<char> expected = pattern(4 * kMiB, 1);
  for (int frames = 0; head.kind == bulk::Kind::data; ++frames) {
    ASSERT_LT(frames, 32);
    std::vector<char> piece(head.bytes);
    ASSERT_TRUE(peer.hear(piece.data(), piece.size()));
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), expected.begin() + static_cast<std::ptrdiff_t>(head.offset)));
    ASSERT_TRUE(peer.hear(&head));
  }
  EXPECT_EQ(head.kind, bulk::Kind::fail);
  EXPECT_EQ(head.key.comm, 7u);
}

TEST(LongMessages, AReceiveIsCancelled) {
  RawPeer peer;
  std::vector<char> place(kMiB, '-');
  Handle handle = nullptr;
  ASSERT_EQ(peer.driver().post_recv(1, {7, 1, 0}, place.data(), kMiB, &handle), Status::ok);
  peer.accept();
  bulk::Head head;
  ASSERT_TRUE(peer.hear(&head));
  const std::vector<char> data(65536, 'x');
  std::vector<char> begun(bulk::Head::kBytes + 1000, 'x');
  bulk::Head{bulk::Kind::data, {7, 1, 0}, 0, 65536, kMiB}.write(begun.data());
  ASSERT_TRUE(peer.say(begun.data(), begun.size()));
  while (handle->arrived_bytes < 1000) sys::nap_ns(100'000);
  cancel(peer.driver(), handle);
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::peer_failed);
  const std::vector<char> then = place;
  do {
    ASSERT_TRUE(peer.hear(&head));
  } while (head.kind == bulk::Kind::grant);
  EXPECT_EQ(head.kind, bulk::Kind::fail);
  ASSERT_TRUE(peer.say(data.data(), 65536 - 1000));  // the rest is on its way, and another piece
  ASSERT_TRUE(peer.say({bulk::Kind::data, {7, 1, 0}, 65536, 65536, kMiB}));
  ASSERT_TRUE(peer.say(data.data(), 65536));
  // The connection still serves another communicator.
  char word = '-';
  ASSERT_EQ(peer.driver().post_recv(1, {8, 1, 0}, &word, 1, &handle), Status::ok);
  ASSERT_TRUE(peer.say({bulk::Kind::eager, {8, 1, 0}, 0, 1, 1}));
  ASSERT_TRUE(peer.say("x", 1));
  EXPECT_EQ(wait_and_complete(peer.driver(), handle), Status::ok);
  EXPECT_EQ(word, 'x');
  EXPECT_TRUE(place == then);
}

// The communicator is freed, but some of its eager messages were never received. They give their
// credits back, and so do those that are still on their way.
TEST(LongMessages, WhatIsLeftOfACommunicator) {
  RawPeer peer;
  Handle other = nullptr, last = nullptr;
  char word = '-';
  const auto eager = [&](std::uint32_t index) {
    return peer.say({bulk::Kind::eager, {5, 1, index}, 0, 3, 3}) && peer.say("abc", 3);
  };
  const auto hear_acks = [&](int acks) {
    for (bulk::Head head; acks > 0; acks -= head.kind == bulk::Kind::ack ? 1 : 0) ASSERT_TRUE(peer.hear(&head));
  };
  ASSERT_EQ(peer.driver().post_recv(1, {6, 1, 0}, &word, 1, &other), Status::ok);
  ASSERT_EQ(peer.driver().post_recv(1, {6, 1, 1}, &word, 1, &last), Status::ok);
  peer.accept();
  for (std::uint32_t i = 0; i < bulk::kCredit - 1; ++i) ASSERT_TRUE(eager(i));
  ASSERT_TRUE(peer.say({bulk::Kind::eager, {6, 1, 0}, 0, 1, 1}) && peer.say("x", 1));
  EXPECT_EQ(wait_and_complete(peer.driver(), other), Status::ok);
  peer.driver().forget(5);
  hear_acks(bulk::kCredit / 2);
  for (std::uint32_t i = 0; i < bulk::kCredit / 2; ++i) ASSERT_TRUE(eager(100 + i));
  hear_acks(bulk::kCredit / 2);
  ASSERT_TRUE(peer.say({bulk::Kind::eager, {6, 1, 1}, 0, 1, 1}) && peer.say("y", 1));
  EXPECT_EQ(wait_and_complete(peer.driver(), last), Status::ok);
  EXPECT_EQ(word, 'y');
}

// A rank that gives up says why to a peer that has not come yet, too.
TEST(LongMessages, WhoGivesUpSaysWhy) {
  DriverJob job(3);
  job.run([&](int rank, bulk::Driver& driver) {
    if (rank == 2) {
      for (const int peer : {0, 1}) driver.abandon(peer, 5, {Status::peer_lost, 17});
      sys::nap_ns(200'000'000);
      return;
    }
    if (rank == 1) sys::nap_ns(50'000'000);
    char word = 0;
    Handle handle = nullptr;
    ASSERT_EQ(driver.post_recv(2, {5, 1, 0}, &word, 1, &handle), Status::ok);
    EXPECT_EQ(wait_for(handle), Status::peer_lost);
    EXPECT_EQ(handle->lost.rank, 17);
    EXPECT_EQ(handle->lost.witness, 2);
    driver.complete(handle);
  });
}

}  // namespace
}  // namespace stretto::test
