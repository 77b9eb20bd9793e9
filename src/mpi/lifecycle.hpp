// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init, MPI_Finalize and fork: what all ranks agree on at start-up, and what happens at the
// end. This file does not include mpi.h.
#pragma once

namespace stretto::mpi {

// Start-up: they call the host's function, then all ranks agree.
int init(int* argc, char*** argv);
int init_thread(int* argc, char*** argv, int required, int* provided);

}  // namespace stretto::mpi
