// SPDX-License-Identifier: BSD-3-Clause
// How long messages are by which connections of our own are compared with the MPI's, and how often
// they go: rank 0's side. It costs some 4 ms on slow links, and less on fast ones.
//
// The answer is a coarse one. It keeps calls from networks that the MPI uses better than TCP can.
// What is close, the trials decide by the program's own calls (overlap_trial.hpp).
#pragma once
#include <algorithm>
#include <cstdint>

#include "mpi/job/kept_times.hpp"

namespace stretto::mpi {

class SpeedProbe {
 public:
  static constexpr std::uint64_t kLeastBytes = 16 << 10, kMostBytes = 1 << 20;

  explicit SpeedProbe(std::uint64_t now_ns) : began_ns_(now_ns) {}
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] const KeptTimes& best() const { return best_; }

  // One trip there and back of bytes(), by either way. Returns the length of the next trips; 0: it
  // is enough.
  std::uint64_t add(const KeptTimes& trip, std::uint64_t now_ns) {
    best_ = {std::min(best_.ours_ns, trip.ours_ns), std::min(best_.host_ns, trip.host_ns)};
    if (++trips_ < kTrips) return bytes_;
    if (best_.host_ns < kLongNs && bytes_ < kMostBytes) {
      *this = SpeedProbe(began_ns_, bytes_ * 4);
    } else if (!is_close() || trips_ == kMostTrips || now_ns - began_ns_ > kMostNs) {
      bytes_ = 0;
    }
    return bytes_;
  }

  static bool suffice(const KeptTimes& times) { return times.ours_ns * 2 <= times.host_ns * 3; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // A trip of so long is ruled by the rate, not by latencies.
  static constexpr std::uint64_t kLongNs = 400'000, kMostNs = 4'000'000;
  static constexpr int kTrips = 2, kMostTrips = 12;

  SpeedProbe(std::uint64_t began_ns, std::uint64_t bytes) : began_ns_(began_ns), bytes_(bytes) {}
  // Load may have decided.
  [[nodiscard]] bool is_close() const {
    return best_.ours_ns * 5 > best_.host_ns * 6 && best_.ours_ns * 5 < best_.host_ns * 12;
  }

  std::uint64_t began_ns_, bytes_ = kLeastBytes;
  int trips_ = 0;
  KeptTimes best_{kNever, kNever};
};

}  // namespace stretto::mpi
