// SPDX-License-Identifier: BSD-3-Clause
// One-way times at which a collective can be held against the machine: chained calls instead of a common start, because
// a start that ranks share to within 10 ns does not exist.
#pragma once
#include "measure.hpp"

namespace bench {

// Per call, of 8 bytes where there are any: broadcasts whose root changes, so that each is one way; barriers and sums
// back to back, each of which takes the time that a flag needs to the other side.
inline constexpr const char* kChains[] = {"bcast", "barrier", "allreduce"};
inline constexpr int kChainCount = 3;

struct Latency {
  double flag_ns = 0;                        // Team::flag_ns
  double call_ns[kChainCount][kPlain] = {};  // of kOurs, kHost, kBound
};

Latency measure_latency(Bench& bench);

}  // namespace bench
