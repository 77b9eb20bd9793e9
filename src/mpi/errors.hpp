// SPDX-License-Identifier: BSD-3-Clause
// From what went wrong to what MPI says: classes, and the communicator's error handler.
#pragma once
#include "base/status.hpp"
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// Raises `code` through the error handler of the call's communicator, if the handler returns; the call's code from then
// on. `what` says it in words. False: the handler has freed the communicator, whose state is gone.
[[gnu::cold]] bool raise(Call& call, int code, const char* what);

// Likewise the code for what the engine reports.
[[gnu::cold]] bool raise(Call& call, Status status);

// The MPI ends, and forgets the codes that we have from it; it may begin again (sessions).
void errors_stop();

}  // namespace stretto::mpi
