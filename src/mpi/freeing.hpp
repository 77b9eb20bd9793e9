// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "mpi/host.hpp"

namespace stretto::mpi {

// Whether this thread is freeing that communicator: its calls come from callbacks, and are the
// host's. On all ranks alike, whether or not our attribute is still there.
bool is_being_freed(MPI_Comm comm);

}  // namespace stretto::mpi
