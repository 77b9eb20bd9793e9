// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/state/neighborhood.hpp"

#include <cstdlib>
#include <new>

#include "base/array.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

struct Lists {
  Array<int> sources, destinations;
  bool is_grid = false;

  void both(int rank) {
    sources.push(rank);
    destinations.push(rank);
  }
};

bool has_places(Array<int>& list, int count) { return list.resize(static_cast<std::size_t>(count), 0); }

bool read_grid(MPI_Comm comm, Lists& lists) {
  int dimensions = 0;
  bool good = host().Cartdim_get(comm, &dimensions) == MPI_SUCCESS;
  for (int d = 0; d < dimensions && good; ++d) {
    int below = MPI_PROC_NULL, above = MPI_PROC_NULL;
    good = host().Cart_shift(comm, d, 1, &below, &above) == MPI_SUCCESS;
    lists.both(below);
    lists.both(above);
  }
  lists.is_grid = true;
  return good;
}

bool read_graph(MPI_Comm comm, int rank, Lists& lists) {
  int count = 0;
  if (host().Graph_neighbors_count(comm, rank, &count) != MPI_SUCCESS) return false;
  if (!has_places(lists.sources, count)) return false;
  if (host().Graph_neighbors(comm, rank, count, lists.sources.data()) != MPI_SUCCESS) return false;
  for (const int neighbor : lists.sources) lists.destinations.push(neighbor);
  return true;
}

// Weights have places, too: to say that they are not wanted takes a symbol of the host.
bool read_distributed_graph(MPI_Comm comm, Lists& lists) {
  int in = 0, out = 0, weighted = 0;
  Array<int> in_weights, out_weights;
  if (host().Dist_graph_neighbors_count(comm, &in, &out, &weighted) != MPI_SUCCESS) return false;
  const bool places = has_places(lists.sources, in) && has_places(lists.destinations, out) &&
                      has_places(in_weights, in) && has_places(out_weights, out);
  return places && host().Dist_graph_neighbors(comm, in, lists.sources.data(), in_weights.data(), out,
                                               lists.destinations.data(), out_weights.data()) == MPI_SUCCESS;
}

// False: there is no topology. `good`: it has been read.
bool read_lists(MPI_Comm comm, int rank, Lists& lists, bool* good) {
  int kind = MPI_UNDEFINED;
  if (host().Topo_test(comm, &kind) != MPI_SUCCESS) return false;
  kind = vendor::topology_of(comm, kind);
  if (kind == MPI_CART)
    *good = read_grid(comm, lists);
  else if (kind == MPI_GRAPH)
    *good = read_graph(comm, rank, lists);
  else if (kind == MPI_DIST_GRAPH)
    *good = read_distributed_graph(comm, lists);
  else
    return false;
  return true;
}

void name_nobody(Array<int>& list) {
  for (int& rank : list) {
    if (rank == MPI_PROC_NULL) rank = Neighborhood::kNobody;
  }
}

}  // namespace

bool neighborhood_read(const State& state, Neighborhood& into) {
  Lists lists;
  bool good = true;
  if (!read_lists(state.handle, state.rank, lists, &good)) return false;
  name_nobody(lists.sources);
  name_nobody(lists.destinations);
  const std::span<const int> sources(lists.sources.data(), lists.sources.size());
  const std::span<const int> destinations(lists.destinations.data(), lists.destinations.size());
  good = good && !lists.sources.failed() && !lists.destinations.failed() &&
         into.fill(state.rank, sources, destinations, lists.is_grid);
  if (!good) std::abort();  // a few words, and the other members rely on this rank
  return true;
}

bool neighbors_read(MPI_Comm comm, int rank, Array<int>& sources, Array<int>& destinations) {
  Lists lists;
  bool good = false;
  if (!read_lists(comm, rank, lists, &good) || !good) return false;
  sources.swap(lists.sources);
  destinations.swap(lists.destinations);
  return !sources.failed() && !destinations.failed();
}

void neighborhood_count(Handle comm, int* sources, int* destinations) {
  if (host().Topo_test == nullptr || !host_is_proven()) return;
  State state;
  state.handle = as<MPI_Comm>(comm);
  Neighborhood found;
  if (host().Comm_rank(state.handle, &state.rank) != MPI_SUCCESS) return;
  (void)neighborhood_read(state, found);
  *sources = found.sources();
  *destinations = found.destinations();
}

Neighborhood* neighborhood_create(const State& state) {
  Neighborhood found;
  if (!neighborhood_read(state, found)) return nullptr;
  void* const memory = std::malloc(sizeof(Neighborhood));
  if (memory == nullptr) std::abort();  // a few words, and the other members rely on this rank
  return new (memory) Neighborhood(static_cast<Neighborhood&&>(found));
}

void neighborhood_free(Neighborhood* neighborhood) {
  if (neighborhood != nullptr) neighborhood->~Neighborhood();
  std::free(neighborhood);
}

}  // namespace stretto::mpi
