// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/world_ranks.hpp"

#include <cstdlib>

#include "base/array.hpp"
#include "mpi/job/world.hpp"
#include "mpi/job/worlds_met.hpp"

namespace stretto::mpi {

bool ranks_in_world(MPI_Group group, Array<int>& ranks) {
  int size = 0;
  host().Group_size(group, &size);
  const auto count = static_cast<std::size_t>(size);
  Array<int> own;
  MPI_Group world{};
  const bool good = own.resize(count, 0) && ranks.resize(count, MPI_UNDEFINED);
  if (good && host().Comm_group(host().constants.comm_world, &world) == MPI_SUCCESS) {
    for (int r = 0; r < size; ++r) own[static_cast<std::size_t>(r)] = r;
    host().Group_translate_ranks(group, size, own.data(), world, ranks.data());
    host().Group_free(&world);
  }
  return good;
}

bool translate_to_world(MPI_Group group, Array<int>& ranks) {
  const bool good = ranks_in_world(group, ranks);
  host().Group_free(&group);
  return good;
}

bool has_foreign(MPI_Comm comm) {
  if (!g_worlds_met.load(std::memory_order_relaxed) || comm == host().constants.comm_world) return false;
  MPI_Group ours{};
  if (host().Comm_group(comm, &ours) != MPI_SUCCESS) return true;
  Array<int> ranks;
  if (!translate_to_world(ours, ranks)) std::abort();  // as in world_ranks
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
