// SPDX-License-Identifier: BSD-3-Clause
// What ran, how often, how much, and why a call went to the host: counted always (a few additions to memory that the
// call touches anyway), timed and reported when STRETTO_STATS asks for it. Freed communicators leave a line for all of
// their size, so that short-lived ones cost nothing in the long run.
#pragma once
#include <cstdint>

#include "base/collective.hpp"

namespace stretto::mpi {

struct State;
struct Call;

struct Counter {
  std::uint64_t calls[kPaths];
  std::uint64_t bytes;  // through the engine: sent plus received by this rank
  std::uint64_t ns;     // in these calls, with STRETTO_STATS
};
struct Counters {
  Counter of[kCollectives];
};

// Why a communicator or a collective on it is left to the host.
const char* decline_reason(const State& state, Collective collective);

// The communicator goes: its numbers join the summary of its size. Call with the communicators' lock held.
void stats_fold(const State& state);

// At finalize, or at exit. With `gather`, collective over COMM_WORLD: rank 0 reports for all; otherwise each for
// itself.
void stats_report(bool gather);

}  // namespace stretto::mpi
