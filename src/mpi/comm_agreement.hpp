// SPDX-License-Identifier: BSD-3-Clause
// How the members of a communicator agree on what serves its collectives.
#pragma once
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// Why nothing of ours serves it. `rank` is the member that declines; -1: a fact that all see.
inline void decline(State& state, const char* reason, int rank = -1) {
  state.reason = reason;
  state.reason_rank = rank;
}

// What each member knows without a word, and all know alike. False: they have to agree.
bool decide_alone(State& state, bool inter);
// The number of calls in which every rank waits for all others after which the members agree; 0:
// before the first call of any kind. Members of communicators that no MPI_Init has agreed on have
// agreed on no option either. Checks of every call begin with the first, and so does an order of
// combining that is not the host's.
std::uint32_t calls_until_agreement(const State& state);
// Collective over the communicator, in a call of `collective`.
void agree(State& state, Collective collective);

// Says what serves the communicator, if somebody wants to know (comm_report.cpp).
void report(const State& state);

}  // namespace stretto::mpi
