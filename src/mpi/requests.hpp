// SPDX-License-Identifier: BSD-3-Clause
// Requests of nonblocking calls that Stretto serves itself. This file does not include mpi.h.
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto::mpi {

extern constinit std::atomic<bool> g_nonblocking;            // some communicator serves such calls
extern constinit std::atomic<std::uint32_t> g_own_requests;  // how many are not complete

// Some request of Stretto's own is not complete. Every wait of the program then has to drive it.
inline bool own_requests_outstanding() { return g_own_requests.load(std::memory_order_relaxed) != 0; }

[[gnu::cold]] void drive_outstanding_requests();

// Moves what can move of these requests, and completes those that have ended. It never waits. Any
// thread that may call the MPI may call it.
inline void drive_own_requests() {
  if (own_requests_outstanding()) [[unlikely]]
    drive_outstanding_requests();
}

}  // namespace stretto::mpi
