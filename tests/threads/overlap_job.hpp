// SPDX-License-Identifier: BSD-3-Clause
// A job whose ranks are threads, each of which makes calls that may return early.
#pragma once
#include "overlap/deferred_calls.hpp"
#include "threads/drivers.hpp"

namespace stretto::test {

class OverlapJob {
 public:
  explicit OverlapJob(int ranks, const DriverJob::FabricOf& fabric = {}) : messages_(ranks, 0, fabric) {
    overlap::DeferredCalls::Settings settings;
    settings.most = sys::FaultMode::kernel;
    settings.least_bytes = 4096;
    for (int r = 0; r < ranks; ++r) drivers_.emplace_back(messages_.driver(r)).open(settings);
  }
  bulk::Driver& messages(int rank) { return messages_.driver(rank); }
  [[nodiscard]] bool can_guard() const {
    return drivers_[0].guard_error() == 0 && drivers_[0].mode() == sys::FaultMode::kernel;
  }
  void run(const std::function<void(int rank, overlap::DeferredCalls& driver)>& main) {
    std::vector<std::jthread> threads;
    for (int r = 0; r < static_cast<int>(drivers_.size()); ++r) threads.emplace_back([&, r] { main(r, drivers_[r]); });
  }

 private:
  DriverJob messages_;
  std::deque<overlap::DeferredCalls> drivers_;
};

}  // namespace stretto::test
