// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "mpi/host.hpp"

namespace stretto::mpi {

// Whether this thread is freeing that communicator. Calls on it then come from callbacks, and the
// host serves them. This is so on all ranks, whether or not our attribute is still there.
bool is_being_freed(MPI_Comm comm);

}  // namespace stretto::mpi
