// SPDX-License-Identifier: BSD-3-Clause
// Whether the program may have communicators with members of several worlds (world_ranks.hpp). This
// file does not include mpi.h.
#pragma once
#include <atomic>

namespace stretto::mpi {

// Relaxed: a thread that uses a merged communicator has its handle from the thread that made it.
inline constinit std::atomic<bool> g_worlds_met{false};
// The program makes one communicator of the members of two, which may be of several worlds.
inline void worlds_meet() { g_worlds_met.store(true, std::memory_order_relaxed); }

}  // namespace stretto::mpi
