// SPDX-License-Identifier: BSD-3-Clause
// From what went wrong to what MPI says: classes, and the communicator's error handler.
#pragma once
#include "base/status.hpp"
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// Raises `code` through the communicator's error handler and returns it (if the handler does). `what` says it in words.
[[gnu::cold]] int raise(const Call& call, const State& state, int code, const char* what);

// The code for what the engine reports; raised.
[[gnu::cold]] int raise(const Call& call, const State& state, Status status);

}  // namespace stretto::mpi
