// SPDX-License-Identifier: BSD-3-Clause
// Drivers of long messages whose ranks are threads, or a program that only knows the handshake. All
// reach each other by the loopback.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "shm/waiter.hpp"
#include "transport/bulk/driver.hpp"

namespace stretto::test {

namespace bulk = transport::bulk;

// A job whose ranks have a driver each.
class DriverJob {
 public:
  using FabricOf = std::function<transport::Fabric*(int rank)>;
  explicit DriverJob(int ranks, std::uint32_t buffer_bytes = 0, const FabricOf& fabric = {}) : drivers_(ranks) {
    std::vector<transport::Endpoint> endpoints(ranks);
    for (int r = 0; r < ranks; ++r) {
      bulk::Driver::Settings settings;
      settings.rank = r;
      settings.addresses[0] = {htonl(INADDR_LOOPBACK), ~0u};
      settings.address_count = 1;
      settings.buffer_bytes = buffer_bytes;
      if (fabric) settings.fabric = fabric(r);
      EXPECT_EQ(drivers_[r].open(settings, &endpoints[r]), Status::ok);
    }
    for (int r = 0; r < ranks; ++r) {
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer != r) EXPECT_EQ(drivers_[r].introduce(peer, endpoints[peer]), Status::ok);
      }
    }
  }
  [[nodiscard]] int ranks() const { return static_cast<int>(drivers_.size()); }
  bulk::Driver& driver(int rank) { return drivers_[rank]; }

  using RankMain = std::function<void(int rank, bulk::Driver& driver)>;
  void run(const RankMain& main) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks(); ++r) threads.emplace_back([&, r] { main(r, drivers_[r]); });
  }

 private:
  std::deque<bulk::Driver> drivers_;
};

inline shm::WaitPolicy patient_policy() {
  shm::WaitPolicy policy;
  policy.spins = 100;
  policy.yield_after_ns = 0;
  policy.nap_after_ns = 1'000'000;
  return policy;
}

inline Status wait_for(bulk::Handle handle) {
  const shm::WaitPolicy policy = patient_policy();
  shm::Waiter waiter(policy);
  while (!bulk::Driver::done(handle)) (void)waiter.step();
  return handle->status;
}
inline Status wait_and_complete(bulk::Driver& driver, bulk::Handle handle) {
  const Status status = wait_for(handle);
  driver.complete(handle);
  return status;
}

// The message ends, and with it all else of its communicator. Then the memory is the caller's.
inline void cancel(bulk::Driver& driver, bulk::Handle handle) {
  driver.abandon(handle->peer, handle->key.comm, {Status::peer_failed, -1});
  (void)wait_for(handle);
}

// Rank 0 has a driver. Rank 1 is this object: it calls rank 0, and says and hears what a test says.
class RawPeer {
 public:
  explicit RawPeer(std::uint32_t buffer_bytes = 0, transport::Fabric* fabric = nullptr) {
    bulk::Driver::Settings settings;
    settings.fabric = fabric;
    settings.addresses[0] = {htonl(INADDR_LOOPBACK), ~0u};
    settings.address_count = 1;
    settings.buffer_bytes = buffer_bytes;
    transport::Endpoint first;
    EXPECT_EQ(driver_.open(settings, &first), Status::ok);
    endpoints_.push(first);
    endpoints_.push(listeners_.open(settings.addresses, 1));
    EXPECT_EQ(driver_.introduce(1, endpoints_[1]), Status::ok);
  }
  ~RawPeer() { close(); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bulk::Driver& driver() { return driver_; }
  static constexpr int kWords = 0, kBulk = 1, kTracks = bulk::Connection::kTracks;
  // Rank 0 has posted something and calls. Returns when the connection is open, or so many of its
  // streams.
  void accept(int tracks = kTracks) {
    transport::IncomingConnections incoming;
    const transport::Party party{1, endpoints_};
    while (streams_[tracks - 1] < 0) {
      ASSERT_TRUE(incoming.step(
          party, listeners_, 1, [](const transport::Hello&) { return true; },
          [&](const transport::Hello& hello, int stream) { streams_[hello.which] = stream; }));
      sys::nap_ns(20'000);
    }
  }
  // Calls rank 0 for the first stream, which has a driver's thread to hear it.
  void call() {
    constexpr auto nothing = [](void*) {};
    ASSERT_EQ(driver_.on_thread(nothing, nullptr), Status::ok);
    const sys::HostAddress loopback{htonl(INADDR_LOOPBACK), ~0u};
    transport::Attempt attempt;
    attempt.start(&loopback, 1, endpoints_[0]);
    const transport::Party party{1, endpoints_};
    int error = EAGAIN;
    for (; error == EAGAIN; sys::nap_ns(20'000)) error = attempt.step(party, 0, &streams_[kWords]);
    ASSERT_EQ(error, 0);
  }
  [[nodiscard]] int stream(int track) const { return streams_[track]; }
  // As much as the driver takes; false: the connection is gone.
  bool say(const void* data, std::size_t bytes, int track = kWords) {
    for (std::size_t gone = 0; gone < bytes;) {
      const sys::Piece piece{data, bytes};
      std::size_t sent = 0;
      const int error = sys::stream_send(streams_[track], &piece, 1, gone, &sent);
      if (error != 0 && error != EAGAIN) return false;
      gone += sent;
      if (error == EAGAIN) sys::nap_ns(20'000);
    }
    return true;
  }
  bool say(const bulk::Head& head, int track = kWords) {
    char words[bulk::Head::kBytes];
    head.write(words);
    return say(words, sizeof words, track);
  }
  // From the track of the last head.
  bool hear(void* data, std::size_t bytes) {
    for (std::size_t got = 0; got < bytes;) {
      std::size_t more = 0;
      const int error = sys::stream_receive(streams_[heard_], static_cast<char*>(data) + got, bytes - got, &more);
      if (error != 0 && error != EAGAIN) return false;
      got += more;
      if (error == EAGAIN) sys::nap_ns(20'000);
    }
    return true;
  }
  // The next one, by whichever track: words first.
  bool hear(bulk::Head* head) {
    for (std::size_t waiting = 0;; sys::nap_ns(20'000)) {
      for (heard_ = 0; heard_ < kTracks; ++heard_) {
        if (sys::stream_waiting(streams_[heard_], &waiting) == 0 && waiting != 0) return hear_head(head);
      }
      heard_ = kWords;
      if (has_ended(kWords) || has_ended(kBulk)) return false;
    }
  }
  bool hear(bulk::Head* head, int track) {
    heard_ = track;
    return hear_head(head);
  }
  void close(int track) {
    if (streams_[track] >= 0) sys::close_descriptor(streams_[track]);
    streams_[track] = -1;
  }
  void close() {
    for (int track = 0; track < kTracks; ++track) close(track);
  }
  // Nothing more comes.
  [[nodiscard]] bool has_ended(int track) const {
    char next = 0;
    return recv(streams_[track], &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

 private:
  bool hear_head(bulk::Head* head) {
    char words[bulk::Head::kBytes];
    return hear(words, sizeof words) && head->read(words);
  }

  bulk::Driver driver_;
  transport::Listeners listeners_;
  Array<transport::Endpoint> endpoints_;
  int streams_[kTracks] = {-1, -1};
  int heard_ = kWords;
};

}  // namespace stretto::test
