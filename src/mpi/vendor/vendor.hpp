// SPDX-License-Identifier: BSD-3-Clause
// What differs between MPI ABIs. The data is in abis.toml, the code in one folder per ABI: each
// library is compiled with one of them. <abi>/vendor.cpp defines the functions declared here.
// <abi>/handles.hpp says what handles are, <abi>/abi.gen.hpp has the data; host.hpp includes both.
// launcher.cpp has what differs between launchers.
#pragma once
#include <cstdint>

#include "mpi/host/host.hpp"

namespace stretto::mpi::vendor {

// Whether an MPI that calls itself `library_version` may have this ABI. A library that wraps
// another one may say so, too.
bool recognises(const char* library_version);
// Returns false if the host lacks one of the constants.
bool fill_constants(Constants& constants);
// Corrects constants of which only an initialised host tells. MPI_Init has returned.
void ask_initialized_host(Constants& constants);
// Whether the host may be asked for the size of this predefined type. To ask for one that it lacks
// may be an error. All ranks have the same host, so they get the same answer. The caller holds a
// lock.
bool has_type(MPI_Datatype type);
// Whether calls to MPI from this object, which is not libmpi itself, are the host's own.
// `name` has no directory.
bool is_component(const char* name);
// Whether the host reports failed processes and revoked communicators (ULFM). Only the host can:
// its own collectives return then, and in time.
bool reports_failures();
// Enters the host's progress engine by a function that is there for that. False: it has none.
bool drive();
// A wait pokes the host once in so many steps. The number follows from the cost of a poke there.
unsigned poke_every();
// Whether the host raises an error of a receive's request by the handler of its communicator, as it
// does in MPI_Recv. If not, that of MPI_COMM_WORLD hears of it.
bool requests_keep_handlers();

// Whether the host says of a request, without any effect, that it is complete.
bool looks_at_requests();
// If so: whether this request is complete, or inactive, or none.
bool is_complete(MPI_Request request);
// Whether MPI_Testany returns MPI_SUCCESS for a persistent receive that has failed.
bool testany_hides_errors();
// Whether the status that MPI_Testsome gives for a persistent receive that has failed says
// MPI_SUCCESS. Its code is right.
bool testsome_hides_errors();

// Whether MPI_Sendrecv_replace sets MPI_ERROR in a status without an error.
bool waits_clear_errors();

// Whether a rank that waits in the host gives its processor away by itself. Known after MPI_Init.
bool yields_when_idle();

// Whether Stretto's nonblocking collectives on a node were measured to be faster than the host's
// (docs/results/nonblocking.md).
bool nonblocking_gains();

// Whether no rank leaves MPI_Init before all have entered it.
bool meets_in_init();

// What MPI_Topo_test has said of a communicator, `said`, put right. In Open MPI 5 a distributed
// graph that was made of a grid or a graph says that it is one, and the functions of grids then
// crash.
int topology_of(MPI_Comm comm, int said);

// ---- Launcher.cpp ----
// What the launcher says of this process by environment variables. It need not be true of
// MPI_COMM_WORLD: the MPI may not know this launcher, or a child of a rank may be a job of its own.
struct Launched {
  int rank = -1, size = 0;       // among all processes that were launched together; -1: no launcher tells
  std::uint64_t job = 0;         // a number that those of this node have in common; 0: it and the slots are unknown
  unsigned slot = 0, slots = 0;  // rank and number among those of this node
  bool slurm = false;            // srun has started them
};
Launched launched();
int launcher_rank();                // rank in MPI_COMM_WORLD, -1 if no launcher tells
unsigned launcher_ranks_on_node();  // 0 if no launcher tells

}  // namespace stretto::mpi::vendor
