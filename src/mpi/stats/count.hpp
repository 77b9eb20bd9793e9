// SPDX-License-Identifier: BSD-3-Clause
// What is counted of every call.
#pragma once
#include "mpi/job/process.hpp"
#include "mpi/state/state.hpp"
#include "mpi/stats/profile.hpp"

namespace stretto::mpi {

inline void count_call(const Call& call, Path path, std::uint64_t bytes) {
  Counter& counter = call.state->counters.of[static_cast<int>(call.collective())];
  ++counter.calls[static_cast<int>(path)];
  counter.bytes += bytes;
  std::uint64_t ns = 0;
  if (g_timed) [[unlikely]]
    counter.ns += ns = profile_call(call, path, bytes);
  g_tally.load(std::memory_order_relaxed)[static_cast<int>(call.collective())].count(
      path, bytes, ns, g_concurrent.load(std::memory_order_relaxed));
  if (call.note != 0) [[unlikely]]
    call_ended(call.note);
  t_thread.last_path = kPathNames[static_cast<int>(path)];
}

}  // namespace stretto::mpi
