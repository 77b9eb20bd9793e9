// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of MPI_COMM_WORLD the members of a communicator are. Some hosts search one group for
// each rank of the other, so MPI_Group_translate_ranks takes time by the product of their sizes.
// The members therefore tell each other.
//
// They may only do so when all of them are of one MPI_COMM_WORLD: the ranks of another one may not
// have the library. Members of several worlds (spawned, connected) come into one communicator by
// MPI_Intercomm_merge, and from it into others. So all members of a communicator with foreign
// members have once called MPI_Intercomm_merge. Only a process that has called it looks for foreign
// members, and it does so without an exchange.
#pragma once
#include "base/array.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {

// The ranks of a group in MPI_COMM_WORLD, MPI_UNDEFINED for those of another one, or where the host
// does not say. Local. False: there is no memory.
bool ranks_in_world(MPI_Group group, Array<int>& ranks);
// The same, and `group` is given back.
bool translate_to_world(MPI_Group group, Array<int>& ranks);
// Whether some members are of another MPI_COMM_WORLD, which every member sees. Local.
bool has_foreign(MPI_Comm comm);
// The members' ranks in MPI_COMM_WORLD, which all are members of. Collective over the communicator.
// The caller frees the array.
int* world_ranks(MPI_Comm comm, int size);

}  // namespace stretto::mpi
