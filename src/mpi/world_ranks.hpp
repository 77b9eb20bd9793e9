// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "mpi/host.hpp"

namespace stretto::mpi {

// The members' ranks in MPI_COMM_WORLD. They are MPI_UNDEFINED for members of another
// MPI_COMM_WORLD (spawned, connected), which every member sees. The caller frees the array.
int* world_ranks(MPI_Comm comm, int size);
bool has_foreign(const int* ranks, int size);

}  // namespace stretto::mpi
