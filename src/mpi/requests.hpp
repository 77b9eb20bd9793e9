// SPDX-License-Identifier: BSD-3-Clause
// Requests of nonblocking calls that Stretto serves itself. This file does not include mpi.h.
#pragma once

namespace stretto::mpi {

// Some request of Stretto's own is not complete. Every wait of the program then has to drive it.
inline bool own_requests_outstanding() { return false; }

// Moves what can move of these requests. It never waits. Any thread may call it.
inline void drive_own_requests() {}

}  // namespace stretto::mpi
