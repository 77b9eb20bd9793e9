// SPDX-License-Identifier: BSD-3-Clause
// What this process knows of its options and of the job. MPI_Init finds it out (lifecycle.cpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {

// Reads them, once, before any call is served.
const Options& options_read();
const Options& options();
// What is wrong with them, until rank 0 has said it for all.
OptionsReport& options_report();
bool options_have_error();
// Ends the job because some rank's options are wrong. The ranks with `speak` say what is
// wrong and do not return.
void options_abort(MPI_Comm comm, bool speak);

// A number that is equal for builds that may share memory and agreements.
std::uint32_t world_version();

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
extern constinit World g_world;  // lifecycle.cpp writes it
inline const World& world() { return g_world; }

// The host's Allgather of bytes, for engine::Bootstrap. `communicator` points to an MPI_Comm.
bool allgather_bytes(void* communicator, const void* mine, void* all, std::size_t bytes);

}  // namespace stretto::mpi
