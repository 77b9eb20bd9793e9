// SPDX-License-Identifier: BSD-3-Clause
// Calls of MPI that are no collectives, with STRETTO_STATS: how many there were, and the time in
// them.
#pragma once
#include <cstdint>

#include "observe/stats_text.hpp"
#include "shm/atomic.hpp"

namespace stretto::observe {

enum class OtherKind : std::uint8_t {
  messages,  // sends, receives, probes, and waits for requests of any kind
  one_sided,
  files,
  communicators,  // making them
  collective,     // begins one with a request: its time is among the collectives
  none,
};
constexpr int kOtherKinds = static_cast<int>(OtherKind::collective);

struct OtherTotals {
  std::uint64_t calls[kOtherKinds], ns[kOtherKinds];

  void add(const OtherTotals& more) {
    for (int k = 0; k < kOtherKinds; ++k) {
      calls[k] += more.calls[k];
      ns[k] += more.ns[k];
    }
  }
};

// Several threads may count at once, and another process may read. No number depends on another
// one, so they need no order.
struct OtherCalls {
  shm::Atomic<std::uint64_t> calls[kOtherKinds], ns[kOtherKinds];

  void count(OtherKind kind, std::uint64_t spent_ns) {
    calls[static_cast<int>(kind)].fetch_add(1);
    ns[static_cast<int>(kind)].fetch_add(spent_ns);
  }
  [[nodiscard]] OtherTotals totals() const {
    OtherTotals found = {};
    for (int k = 0; k < kOtherKinds; ++k) {
      found.calls[k] = calls[k].load_relaxed();
      found.ns[k] = ns[k].load_relaxed();
    }
    return found;
  }
};

// ,"other_calls":{...}
void json_others(StatsText& out, const OtherTotals& totals);
// A line with the kinds that took time, as means of the ranks. Nothing if there were no such calls.
void text_others(StatsText& out, const OtherTotals& sum, std::uint64_t run_ns, std::uint64_t ranks);

}  // namespace stretto::observe
