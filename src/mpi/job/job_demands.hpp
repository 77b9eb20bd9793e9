// SPDX-License-Identifier: BSD-3-Clause
// What the user demands (base/demands.hpp) and the job as a whole cannot give.
#pragma once

namespace stretto::mpi {

// Called on rank 0 of MPI_COMM_WORLD, when MPI_Init has agreed on the options.
void job_demands();

}  // namespace stretto::mpi
