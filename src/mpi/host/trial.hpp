// SPDX-License-Identifier: BSD-3-Clause
// Trials: calls that Stretto makes to see whether the host refuses them.
//
// They have a communicator of their own, because Stretto leaves the handlers of the program's
// communicators alone. Other threads may raise errors meanwhile. And a handler cannot always be put
// back: in MPICH 5 MPI_COMM_SELF begins without one, which no function tells from
// MPI_ERRORS_ARE_FATAL. Errors of MPI_Waitall and its like go to MPI_COMM_SELF if it has a handler,
// and else to MPI_COMM_WORLD.
#pragma once
#include "mpi/host/host.hpp"

namespace stretto::mpi {

// After MPI_Init, and before MPI_Finalize.
void trial_begin();
void trial_end();

// A communicator of this process alone that returns errors. Null: there is none, because the
// program has sessions alone, or because the host made none.
MPI_Comm trial_comm();

}  // namespace stretto::mpi
