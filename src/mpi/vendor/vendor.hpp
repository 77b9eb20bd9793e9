// SPDX-License-Identifier: BSD-3-Clause
// What differs between MPIs, one file per ABI (openmpi.cpp, mpich.cpp), and between launchers (launcher.cpp).
#pragma once
#include "mpi/host.hpp"

namespace stretto::mpi::vendor {

extern const char* const kAbi;        // "openmpi"
extern const char* const kFamily;     // for people: "Open MPI"

// Whether an MPI that calls itself `library_version` has this ABI.
bool recognises(const char* library_version);
// False if the host lacks one of them.
bool fill_constants(Constants& constants);
// An object of the host besides libmpi itself whose calls to MPI are the host's own (`name` without directory).
bool is_component(const char* name);
// Whether the host reports failed processes and revoked communicators (ULFM). Only it can: its own collectives return then, and in time.
bool reports_failures();
// A poke per so many steps of a wait: what PMPI_Test costs on this host.
unsigned poke_every();

// ---- launcher.cpp ----
int launcher_rank();                // rank in COMM_WORLD, -1 if no launcher tells
unsigned launcher_ranks_on_node();  // 0 if no launcher tells

}  // namespace stretto::mpi::vendor
