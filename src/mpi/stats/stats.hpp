// SPDX-License-Identifier: BSD-3-Clause
// What ran, how often, how much, and why a call went to the host. Stretto always counts: this
// takes a few additions to memory that the call touches anyway. It times and reports if
// STRETTO_STATS asks. All freed communicators of the same size share one summary, so short-lived
// ones do not fill memory.
#pragma once
#include <cstdint>

#include "base/collective.hpp"

namespace stretto::mpi {

struct State;

// Why a communicator or a collective on it is left to the host.
const char* decline_reason(const State& state, Collective collective);

// Adds the numbers of a communicator that is freed to the summary of its size. The caller holds
// the communicators' lock.
void stats_fold(const State& state);

// Called at MPI_Finalize or at exit. With `gather` it is collective over MPI_COMM_WORLD and rank 0
// reports for all. Otherwise each process reports for itself.
void stats_report(bool gather);

}  // namespace stretto::mpi
