// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "mpi/host.hpp"

namespace stretto::mpi {

// The members' ranks in COMM_WORLD, MPI_UNDEFINED for those of another one (spawned, connected),
// whom every member sees. The caller frees them.
int* world_ranks(MPI_Comm comm, int size);
bool has_foreign(const int* ranks, int size);

}  // namespace stretto::mpi
