// SPDX-License-Identifier: BSD-3-Clause
// The topology of a communicator, as the host tells it. All members know alike whether there is
// one. Stretto serves neighbourhood collectives where there is.
#pragma once
#include "base/array.hpp"
#include "base/neighborhood.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {

// Local. Returns false if the communicator has no topology.
bool neighborhood_read(const State& state, Neighborhood& into);
// The neighbours as the host tells them, with MPI_PROC_NULL. Local. False: there is no topology, or
// no memory.
bool neighbors_read(MPI_Comm comm, int rank, Array<int>& sources, Array<int>& destinations);
// The same on the heap, null if there is none. neighborhood_free() takes null as well.
Neighborhood* neighborhood_create(const State& state);
void neighborhood_free(Neighborhood* neighborhood);
// How many neighbours this rank has in a communicator of the host: none without a topology. It sets
// nothing if the host is not known.
void neighborhood_count(Handle comm, int* sources, int* destinations);

// The collectives that need a topology, if there is none.
inline std::uint32_t unable_on(const State& state) { return state.neighborhood == nullptr ? kNeighborhoods : 0; }

}  // namespace stretto::mpi
