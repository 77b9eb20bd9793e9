// SPDX-License-Identifier: BSD-3-Clause
// Requests of calls that Stretto serves itself: how many there are, and how they move. This file
// does not include mpi.h.
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto::mpi {

extern constinit std::atomic<bool> g_nonblocking;  // some communicator serves such calls
// How many waits and tests must know of: those that are not complete, and those that no wait has
// ended and that have failed or are of a persistent request.
extern constinit std::atomic<std::uint32_t> g_own_requests;

// Every wait of the program then has to drive these requests.
inline bool own_requests_outstanding() { return g_own_requests.load(std::memory_order_relaxed) != 0; }

[[gnu::cold]] void drive_outstanding_requests();

// Moves what can move of these requests, and completes those that have ended. It never waits. Any
// thread that may call the MPI may call it.
inline void drive_own_requests() {
  if (own_requests_outstanding()) [[unlikely]]
    drive_outstanding_requests();
}

}  // namespace stretto::mpi
