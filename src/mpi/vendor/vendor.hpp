// SPDX-License-Identifier: BSD-3-Clause
// What differs between MPIs, one file per ABI (openmpi.cpp, mpich.cpp), and between launchers (launcher.cpp).
#pragma once
#include <cstdint>

#include "mpi/host.hpp"

namespace stretto::mpi::vendor {

extern const char* const kAbi;           // "openmpi"
extern const char* const kFamily;        // for people: "Open MPI"
extern const char* const kSrunOption;    // by which Slurm's srun starts its ranks
extern const char* const kHandleSymbol;  // the symbol that is MPI_COMM_WORLD; null: handles are numbers

// Whether an MPI that calls itself `library_version` may have this ABI. A library that wraps another one may say so,
// too.
bool recognises(const char* library_version);
// False if the host lacks one of them.
bool fill_constants(Constants& constants);
// An object of the host besides libmpi itself whose calls to MPI are the host's own (`name` without directory).
bool is_component(const char* name);
// Whether the host reports failed processes and revoked communicators (ULFM). Only it can: its own collectives return
// then, and in time.
bool reports_failures();
// A poke per so many steps of a wait: what PMPI_Test costs on this host.
unsigned poke_every();

// Whether no rank leaves MPI_Init before all have entered it.
bool meets_in_init();

// ---- launcher.cpp ----
// What the launcher says of this process by environment variables. It need not be true of
// MPI_COMM_WORLD: the MPI may not know this launcher, or a child of a rank may be a job of its own.
struct Launched {
  int rank = -1, size = 0;       // of all processes that were launched together; -1: nothing is said
  std::uint64_t job = 0;         // a number that those of this node have in common; 0: unknown, and so is what follows
  unsigned slot = 0, slots = 0;  // rank and number among those of this node
  bool slurm = false;            // by srun
};
Launched launched();
int launcher_rank();                // rank in COMM_WORLD, -1 if no launcher tells
unsigned launcher_ranks_on_node();  // 0 if no launcher tells

}  // namespace stretto::mpi::vendor
