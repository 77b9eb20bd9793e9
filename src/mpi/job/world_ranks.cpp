// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/world_ranks.hpp"

#include <cstdlib>

#include "base/array.hpp"
#include "mpi/job/world.hpp"
#include "mpi/job/worlds_met.hpp"

namespace stretto::mpi {
bool has_foreign(MPI_Comm comm, int size) {
  if (!g_worlds_met.load(std::memory_order_relaxed) || comm == host().constants.comm_world) return false;
  Array<int> own, ranks;
  const auto count = static_cast<std::size_t>(size);
  if (!own.resize(count, 0) || !ranks.resize(count, MPI_UNDEFINED)) std::abort();  // as in world_ranks
  for (int r = 0; r < size; ++r) own[static_cast<std::size_t>(r)] = r;
  MPI_Group ours, all;
  if (host().Comm_group(comm, &ours) != MPI_SUCCESS) return true;
  host().Comm_group(host().constants.comm_world, &all);
  host().Group_translate_ranks(ours, size, own.data(), all, ranks.data());
  host().Group_free(&ours);
  host().Group_free(&all);
  bool foreign = false;
  for (const int rank : ranks) foreign = foreign || rank == MPI_UNDEFINED;
  return foreign;
}

int* world_ranks(MPI_Comm comm, int size) {
  auto* const ranks = static_cast<int*>(std::malloc(static_cast<std::size_t>(size) * sizeof(int)));
  if (ranks == nullptr) std::abort();  // a few bytes a rank, and the other ranks wait for this rank's word
  if (comm == host().constants.comm_world) {
    for (int r = 0; r < size; ++r) ranks[r] = r;
    return ranks;
  }
  const int mine = world().rank;
  if (!allgather_bytes(&comm, &mine, ranks, sizeof mine)) std::abort();
  return ranks;
}

}  // namespace stretto::mpi
