// SPDX-License-Identifier: BSD-3-Clause
// One-way times at which a collective can be held against the machine: chained calls instead of a common start, because a
// start that ranks share to within 10 ns does not exist.
#pragma once
#include "measure.hpp"

namespace bench {

struct Latency {
  double flag_ns = 0;        // half a round trip of bare flags between ranks 0 and 1
  double bcast_ns[3] = {};   // per call of 8-byte broadcasts whose root changes: each is one way; kOurs, kHost, kBound
  double barrier_ns[3] = {}; // per call of barriers back to back
};

Latency measure_latency(Bench& bench);

}  // namespace bench
