// SPDX-License-Identifier: BSD-3-Clause
// From what went wrong to an MPI error code, raised through the communicator's error handler.
#pragma once
#include "base/status.hpp"
#include "mpi/state/call.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {

// Makes `code` the call's code and calls the error handler of the call's communicator, which may
// end the job. `what` says in words what is wrong. Returns false if the handler has freed the
// communicator, whose state is then gone.
[[gnu::cold]] bool raise(Call& call, int code, const char* what);

// Raises the code that stands for the engine's status.
[[gnu::cold]] bool raise(Call& call, Status status);

// The code that stands for a status.
[[gnu::cold]] int code_of(Status status);

// Called when the MPI ends, and with it the codes that it has given to Stretto. The MPI may
// begin again (sessions).
void errors_stop();

}  // namespace stretto::mpi
