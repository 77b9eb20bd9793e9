// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_free and MPI_Comm_disconnect. This file does not include mpi.h.
#pragma once

namespace stretto::mpi {

// `comm` points to the handle.
int comm_free(void* comm);
int comm_disconnect(void* comm);

}  // namespace stretto::mpi
