// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are threads, each of which makes calls that may return early.
#pragma once
#include "overlap/deferred_calls.hpp"
#include "threads/drivers.hpp"

namespace stretto::test {

class OverlapJob {
 public:
  explicit OverlapJob(int ranks) : drivers_(ranks) {
    std::vector<transport::Endpoint> endpoints(ranks);
    for (int r = 0; r < ranks; ++r) {
      overlap::DeferredCalls::Settings settings;
      settings.connections.rank = r;
      settings.connections.addresses[0] = {htonl(INADDR_LOOPBACK), ~0u};
      settings.connections.address_count = 1;
      settings.most = sys::FaultMode::kernel;
      settings.least_bytes = 4096;
      EXPECT_EQ(drivers_[r].open(settings, &endpoints[r]), Status::ok);
    }
    for (int r = 0; r < ranks; ++r) {
      for (int peer = 0; peer < ranks; ++peer) {
        if (peer != r) EXPECT_EQ(drivers_[r].introduce(peer, endpoints[peer]), Status::ok);
      }
    }
  }
  [[nodiscard]] bool can_guard() const {
    return drivers_[0].guard_error() == 0 && drivers_[0].mode() == sys::FaultMode::kernel;
  }
  void run(const std::function<void(int rank, overlap::DeferredCalls& driver)>& main) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < static_cast<int>(drivers_.size()); ++r) threads.emplace_back([&, r] { main(r, drivers_[r]); });
  }

 private:
  std::deque<overlap::DeferredCalls> drivers_;
};

}  // namespace stretto::test
