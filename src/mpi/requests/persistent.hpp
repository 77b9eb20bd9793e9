// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives (MPI_Bcast_init and the like) that Stretto serves.
//
//   handle   a persistent receive of the host that never starts. So the host knows what to do with
//            an inactive request, and Fortran can name it
//   start    the nonblocking call with the arguments of the _init call (nonblocking.hpp)
//   waits    the host gets the request of the start in the place of the handle (host_requests.hpp)
//   order    MPI lets each rank start requests in an order of its own. So the messages of each
//            persistent request go by a team of their own, which the members make in the _init
//            call. MPI lets that call wait for other ranks
//
// The program may free the communicator, the datatypes and the operation before the request.
#pragma once
#include "mpi/host/host.hpp"

namespace stretto::mpi {

// The host's request in which the program waits, if it waits for this handle. Of an inactive
// request of Stretto's that is MPI_REQUEST_NULL, for which waits and tests do the same.
MPI_Request persistent_current(MPI_Request handle);
// A wait or test has ended `current`. True: it belongs to this persistent request, which becomes
// inactive and keeps its handle.
bool persistent_ended(MPI_Request handle, MPI_Request current);
// At MPI_Finalize.
void persistent_stop();

}  // namespace stretto::mpi
