// SPDX-License-Identifier: BSD-3-Clause
// Pieces of long messages that go by a network of remote reads (transport/bulk/remote_reads.hpp):
// by a double whose reads are late, fail and find no room, and by libfabric where it is here.
#include <gtest/gtest.h>

#include <deque>

#include "threads/drawn_messages.hpp"
#include "threads/local_fabric.hpp"
#include "transport/fabric/libfabric.hpp"

namespace stretto::test {
namespace {

using Faults = LocalFabric::Faults;

// One network for each rank.
struct Networks {
  std::deque<LocalFabric> all;
  transport::Fabric* add(const Faults& faults = {}) { return &all.emplace_back(all.size() + 1, faults); }
  [[nodiscard]] int reads() const {
    int sum = 0;
    for (const LocalFabric& each : all) sum += each.begun;
    return sum;
  }
};

TEST(RemoteReads, BringTheMessages) {
  for (const int ranks : {2, 3, 5}) {
    Networks networks;
    DriverJob job(ranks, 0, [&](int) { return networks.add(); });
    exchange_rounds(job, 2 * kEffort * kMiB);
    EXPECT_GT(networks.reads(), 0);
  }
}

TEST(RemoteReads, FindNoRoomForAWhile) {
  Faults faults;
  faults.full_percent = 50;
  Networks networks;
  DriverJob job(3, 0, [&](int) { return networks.add(faults); });
  exchange_rounds(job, 2 * kMiB);
  EXPECT_GT(networks.reads(), 0);
}

// What was offered comes over the connection then.
TEST(RemoteReads, FailAndTheConnectionGoesOn) {
  for (const int from : {0, 1, 7, 20}) {
    Faults faults;
    faults.fails_from = from;
    faults.fails_count = from == 7 ? 1000 : 3;
    Networks networks;
    DriverJob job(3, 0, [&](int) { return networks.add(faults); });
    exchange_rounds(job, 2 * kMiB);
  }
}

TEST(RemoteReads, ABrokenNetworkIsLeft) {
  for (const int at : {0, 1, 10}) {
    Faults faults;
    faults.breaks_at = at;
    Networks networks;
    DriverJob job(3, 0, [&](int rank) { return networks.add(rank == 1 ? faults : Faults{}); });
    exchange_rounds(job, 2 * kMiB);
  }
}

TEST(RemoteReads, OnlyBetweenThoseThatShareANetwork) {
  Faults other, refuses;
  other.provider = "other";
  refuses.refuses_peers = true;
  Networks networks;
  DriverJob job(5, 0, [&](int rank) -> transport::Fabric* {
    if (rank == 4) return nullptr;
    return networks.add(rank == 2 ? other : rank == 3 ? refuses : Faults{});
  });
  exchange_rounds(job, 2 * kMiB);
  EXPECT_GT(networks.all[0].begun + networks.all[1].begun, 0);
  EXPECT_EQ(networks.all[2].begun, 0);
  EXPECT_EQ(networks.all[3].begun, 0);
}

// A message counts as sent when it stands in a slot. The sender's end waits until it is read.
TEST(RemoteReads, WhatWasSentBeforeTheEndArrives) {
  constexpr std::size_t kBytes = kMiB;
  Networks networks;
  DriverJob job(2, 0, [&](int) { return networks.add(); });
  const std::vector<char> sent = pattern(kBytes, 4);
  job.run([&](int rank, bulk::Driver& driver) {
    Handle handle = nullptr;
    std::vector<char> data = rank == 0 ? sent : std::vector<char>(kBytes);
    if (rank == 0)
      ASSERT_EQ(driver.post_send(1, {1, 1, 0}, data.data(), kBytes, &handle), Status::ok);
    else
      ASSERT_EQ(driver.post_recv(0, {1, 1, 0}, data.data(), kBytes, &handle), Status::ok);
    EXPECT_EQ(wait_and_complete(driver, handle), Status::ok);
    if (rank == 0) {
      std::fill(data.begin(), data.end(), '-');
      driver.stop();
    }
    if (rank == 1) EXPECT_TRUE(data == sent);
  });
}

// Both ends hear of it, and another communicator goes on by the network.
TEST(RemoteReads, ACommunicatorFailsWithPiecesUnderWay) {
  constexpr std::size_t kBytes = 4 * kMiB;
  Networks networks;
  DriverJob job(2, 0, [&](int) { return networks.add(); });
  job.run([&](int rank, bulk::Driver& driver) {
    for (std::uint64_t comm = 1; comm <= 20; ++comm) {
      std::vector<char> data = rank == 0 ? pattern(kBytes, comm) : std::vector<char>(kBytes);
      Handle handle = nullptr, next = nullptr;
      const auto post = [&](std::uint64_t name, Handle* made) {
        return rank == 0 ? driver.post_send(1, {name, 1, 0}, data.data(), kBytes, made)
                         : driver.post_recv(0, {name, 1, 0}, data.data(), kBytes, made);
      };
      ASSERT_EQ(post(comm, &handle), Status::ok);
      if (rank == static_cast<int>(comm % 2)) {
        sys::nap_ns(comm * 50'000);
        driver.abandon(1 - rank, comm, {Status::peer_failed, -1});
      }
      (void)wait_and_complete(driver, handle);
      ASSERT_EQ(post(100 + comm, &next), Status::ok);
      EXPECT_EQ(wait_and_complete(driver, next), Status::ok);
      EXPECT_TRUE(data == pattern(kBytes, comm));
    }
  });
}

// A peer that offers what it has not, or takes what it was not offered.
TEST(RemoteReads, NonsenseEndsTheConnection) {
  const bulk::Head wrong[] = {{bulk::Kind::taken, {}, 3, 0, 0},
                              {bulk::Kind::taken, {}, 3, 0, 1},
                              {bulk::Kind::offer, {1, 1, 0}, 0, 4096, 2 * kMiB},
                              {bulk::Kind::offer, {1, 9, 9}, 0, 4096, kMiB},
                              {bulk::Kind::reach, {}, 0, 40, 0}};
  for (const bulk::Head& head : wrong) {
    Networks networks;
    RawPeer peer(0, networks.add());
    std::vector<char> place(kMiB);
    Handle handle = nullptr;
    ASSERT_EQ(peer.driver().post_recv(1, {1, 1, 0}, place.data(), kMiB, &handle), Status::ok);
    peer.accept();
    const std::vector<char> payload(head.payload_bytes(), '\xff');
    (void)peer.say(head);
    (void)peer.say(payload.data(), payload.size());
    EXPECT_NE(wait_and_complete(peer.driver(), handle), Status::ok);
  }
}

// ---- libfabric ----

const sys::HostAddress kLoopback{htonl(INADDR_LOOPBACK), ~0u};

class WithLibfabric : public testing::TestWithParam<const char*> {
 protected:
  // One network for each rank. Null: there is none.
  transport::Fabric* add() {
    transport::Libfabric& made = networks_.emplace_back();
    return made.find({GetParam(), &kLoopback, 1}) ? &made : nullptr;
  }
  std::deque<transport::Libfabric> networks_;
};

TEST_P(WithLibfabric, MessagesCome) {
  if (add() == nullptr) GTEST_SKIP() << networks_.back().why();
  networks_.clear();
  for (const int ranks : {2, 4}) {
    {
      DriverJob job(ranks, 0, [&](int) { return add(); });
      exchange_rounds(job, 4 * kMiB);
      for (int rank = 0; rank < ranks; ++rank) EXPECT_GT(job.driver(rank).read_bytes(), 0u);
    }
    networks_.clear();
  }
}

TEST_P(WithLibfabric, APeerIsGone) {
  if (add() == nullptr) GTEST_SKIP() << networks_.back().why();
  networks_.clear();
  {
    constexpr std::size_t kBytes = 16 * kMiB;
    DriverJob job(2, 0, [&](int) { return add(); });
    job.run([&](int rank, bulk::Driver& driver) {
      std::vector<char> data(kBytes);
      Handle handle = nullptr;
      if (rank == 0) {
        ASSERT_EQ(driver.post_send(1, {1, 1, 0}, data.data(), kBytes, &handle), Status::ok);
        sys::nap_ns(1'000'000);
        driver.stop();
      } else {
        ASSERT_EQ(driver.post_recv(0, {1, 1, 0}, data.data(), kBytes, &handle), Status::ok);
      }
      const Status status = wait_and_complete(driver, handle);
      EXPECT_TRUE(status == Status::ok || status == (rank == 0 ? Status::unavailable : Status::peer_lost));
    });
  }
  networks_.clear();
}

#if defined(__SANITIZE_THREAD__)  // the threads of `sockets` cannot be followed
constexpr const char* kProviders[] = {"tcp", "shm"};
#else
constexpr const char* kProviders[] = {"tcp", "shm", "sockets"};
#endif
INSTANTIATE_TEST_SUITE_P(RemoteReads, WithLibfabric, testing::ValuesIn(kProviders),
                         [](const auto& info) { return std::string(info.param); });

TEST(Libfabric, AnUnknownProviderIsNotThere) {
  transport::Libfabric network;
  EXPECT_FALSE(network.find({"no-such-provider", &kLoopback, 1}));
  EXPECT_STRNE(network.why(), "");
}

}  // namespace
}  // namespace stretto::test
