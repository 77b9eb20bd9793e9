// SPDX-License-Identifier: BSD-3-Clause
// One-way times, for comparing a collective with the machine. They come from chained calls: no
// start exists that ranks share to within 10 ns.
#pragma once
#include "measure.hpp"

namespace bench {

// Per call, of 8 bytes where there are any. Broadcasts change their root, so that each is one way.
// Barriers and sums go back to back; each takes the time that a flag needs to the other side.
inline constexpr const char* kChains[] = {"bcast", "barrier", "allreduce"};
inline constexpr int kChainCount = 3;

struct Latency {
  double flag_ns = 0;                        // Team::flag_ns
  double call_ns[kChainCount][kPlain] = {};  // of kOurs, kHost, kBound
};

Latency measure_latency(Bench& bench);

}  // namespace bench
