// SPDX-License-Identifier: BSD-3-Clause
// Drivers of long messages whose ranks are threads, or a program that only knows the handshake. All
// reach each other by the loopback.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>

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
  // Rank 0 has posted something and calls. Returns when the connection is open.
  void accept() {
    transport::IncomingConnections incoming;
    const transport::Party party{1, endpoints_};
    while (stream_ < 0) {
      ASSERT_TRUE(incoming.step(
          party, listeners_, 1, [](std::uint32_t) { return true; },
          [&](std::uint32_t, int stream) { stream_ = stream; }));
      sys::nap_ns(20'000);
    }
  }
  [[nodiscard]] int stream() const { return stream_; }
  // As much as the driver takes; false: the connection is gone.
  bool say(const void* data, std::size_t bytes) {
    for (std::size_t gone = 0; gone < bytes;) {
      const sys::Piece piece{data, bytes};
      std::size_t sent = 0;
      const int error = sys::stream_send(stream_, &piece, 1, gone, &sent);
      if (error != 0 && error != EAGAIN) return false;
      gone += sent;
      if (error == EAGAIN) sys::nap_ns(20'000);
    }
    return true;
  }
  bool say(const bulk::Head& head) {
    char words[bulk::Head::kBytes];
    head.write(words);
    return say(words, sizeof words);
  }
  bool hear(void* data, std::size_t bytes) {
    for (std::size_t got = 0; got < bytes;) {
      std::size_t more = 0;
      const int error = sys::stream_receive(stream_, static_cast<char*>(data) + got, bytes - got, &more);
      if (error != 0 && error != EAGAIN) return false;
      got += more;
      if (error == EAGAIN) sys::nap_ns(20'000);
    }
    return true;
  }
  bool hear(bulk::Head* head) {
    char words[bulk::Head::kBytes];
    return hear(words, sizeof words) && head->read(words);
  }
  void close() {
    if (stream_ >= 0) sys::close_descriptor(stream_);
    stream_ = -1;
  }

 private:
  bulk::Driver driver_;
  transport::Listeners listeners_;
  Array<transport::Endpoint> endpoints_;
  int stream_ = -1;
};

}  // namespace stretto::test
