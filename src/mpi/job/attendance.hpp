// SPDX-License-Identifier: BSD-3-Clause
// Which ranks of this node have the library. Stretto sends no message before it knows this: a rank
// without the library would take the message for the program's.
#pragma once
#include <cstdint>

namespace stretto::mpi {

// Asks the launcher, and says that this process has the library.
void attendance_begin();
// The others have seen it.
void attendance_end();
// In a forked child: the parent keeps what it has said.
void attendance_leave_to_parent();

// Whether the launcher's variables describe MPI_COMM_WORLD, and this node has several of its ranks.
bool node_is_known();
// Patience is for ranks that may not have come to MPI_Init yet. MPICH lets ranks make a
// communicator of a session before others have made their first MPI call. Open MPI can be told not
// to synchronise ranks in MPI_Init.
bool node_has_library(std::uint64_t patience_ns);
// For sessions, which have no MPI_Init to agree in: whether all ranks of the job have the library.
// Stretto cannot know this of a job on several nodes and assumes it.
bool session_has_library();
// Warns of N processes that became N jobs of one rank. Nothing fails then, but no user wants it.
void say_if_alone();

}  // namespace stretto::mpi
