// SPDX-License-Identifier: BSD-3-Clause
// How the members of a communicator agree on what serves its collectives.
#pragma once
#include "mpi/state/state.hpp"

namespace stretto::mpi {

// Says why the host serves the communicator. `rank` is the member that declines, or -1 for a
// fact that all members see.
inline void decline(State& state, const char* reason, int rank = -1) {
  state.reason = reason;
  state.reason_rank = rank;
}

// Decides by what all members know alike without an exchange. Returns false if they must agree.
bool decide_alone(State& state, bool inter);
// The members agree after so many calls in which every rank waits for all others. 0:
// before the first call of any kind. If there was no MPI_Init to agree in, the members
// have agreed on no option, so the default counts. STRETTO_CHECK=2 and 3 check every
// call, and STRETTO_REPRODUCIBLE=rank concerns every reduction: they need the agreement
// before the first call.
std::uint32_t calls_until_agreement(const State& state);
// Collective over the communicator, in a call of `collective`.
void agree(State& state, Collective collective);

// Called after a call with result `code` on a communicator whose members have not agreed yet, or
// have to meet once more (State::withheld). It is collective over the communicator if they agree
// now.
[[gnu::cold]] void call_before_agreement(State& state, Collective collective, int code);

// Says what serves the communicator, if an option asks for it (comm_report.cpp).
void report(const State& state);

}  // namespace stretto::mpi
