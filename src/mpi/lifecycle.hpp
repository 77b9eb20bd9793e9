// SPDX-License-Identifier: BSD-3-Clause
// What all ranks agree on at start-up, and what happens at the end: options, MPI_Init, MPI_Finalize, fork.
#pragma once
#include <cstdint>

#include "base/options.hpp"
#include "mpi/host.hpp"

namespace stretto::mpi {

// Reads the options; false if this process stands aside whatever the others do. Called once, before any call is served.
bool lifecycle_begin();

const Options& options();
bool options_have_error();
// Says what is wrong (if it is this rank's) and ends the job. Does not return on the rank that speaks.
void options_abort(MPI_Comm comm, bool speak);

// Equal for builds that may share memory and agreements.
std::uint32_t lifecycle_version();

// COMM_WORLD as we know it. `agreed`: its ranks have agreed at MPI_Init, so that a communicator within it needs no
// exchange about options.
struct World {
  bool agreed = false;
  bool off = false;  // agreed to leave everything to the host
  bool finalized = false;
  bool several_nodes = false;  // its ranks run on more than one
  int rank = -1;
  int size = 0;
  int job = 0;                        // a number that its ranks have in common, for observers; 0: none
  bool same_stats = false;            // STRETTO_STATS has one form on all ranks: the report may be collective
  int check = 0;                      // STRETTO_CHECK, the highest of all ranks
  ReproducibleChoice reproducible{};  // STRETTO_REPRODUCIBLE, likewise
  int agree = 0;                      // STRETTO_AGREE, the least of all ranks
};
const World& world();

// Where there is no MPI_Init to agree in: whether all ranks of the job have the library, as far as
// that is known. Of a job on several nodes it is not, and taken for granted.
bool session_has_library();

// Makes sure that MPI_Finalize tells us. Called when a communicator gets state; does nothing the second time.
void ensure_finalize_hook();

}  // namespace stretto::mpi
