// SPDX-License-Identifier: BSD-3-Clause
// Options, MPI_Init, MPI_Finalize and fork: what all ranks agree on at start-up, and
// what happens at the end.
#pragma once
#include <cstdint>

#include "base/options.hpp"
#include "mpi/host.hpp"

namespace stretto::mpi {

// Reads the options. Returns false if this process stands aside whatever the others do. Called
// once, before any call is served.
bool lifecycle_begin();

const Options& options();
bool options_have_error();
// Ends the job because some rank's options are wrong. The ranks with `speak` say what is
// wrong and do not return.
void options_abort(MPI_Comm comm, bool speak);

// A number that is equal for builds that may share memory and agreements.
std::uint32_t lifecycle_version();

// What Stretto knows of MPI_COMM_WORLD. If its ranks have agreed at MPI_Init, a communicator within
// it needs no exchange about options.
struct World {
  bool agreed = false;
  bool off = false;  // the ranks have agreed to leave everything to the host
  bool finalized = false;
  bool several_nodes = false;    // its ranks run on more than one
  bool same_processors = false;  // all ranks may use the same: none is bound to its own
  int rank = -1;
  int size = 0;
  int job = 0;                        // a number that its ranks have in common, for observers; 0: none
  bool same_stats = false;            // STRETTO_STATS has one form on all ranks: the report may be collective
  int check = 0;                      // STRETTO_CHECK, the highest of all ranks
  ReproducibleChoice reproducible{};  // STRETTO_REPRODUCIBLE, the strictest of all ranks
  int agree = 0;                      // STRETTO_AGREE, the least of all ranks
  NonblockingChoice nonblocking{};    // STRETTO_NONBLOCKING, the least of all ranks
};
const World& world();

// For sessions, which have no MPI_Init to agree in: whether all ranks of the job have the library.
// Stretto cannot know this of a job on several nodes and assumes it.
bool session_has_library();

// Makes sure that MPI_Finalize calls Stretto. Called whenever a communicator gets state;
// later calls do nothing.
void ensure_finalize_hook();

}  // namespace stretto::mpi
