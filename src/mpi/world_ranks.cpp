// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/world_ranks.hpp"

#include <cstdlib>

#include "mpi/lifecycle.hpp"

namespace stretto::mpi {
namespace {

// Some hosts search the second group for each rank of the first, so a translation takes time by the
// product of their sizes. So Stretto translates large communicators part by part. It first looks
// among as many ranks of the world, those that continue the step of the last two. It looks among
// all ranks only if the part is not there.
constexpr int kPart = 32;

// Whether the ranks `own` of `ours` are `begin`, `begin` + `step`, ... of the world, in any order.
// If so, `ranks` says in which order.
bool translate_as_expected(MPI_Group ours, MPI_Group all, const int* own, int count, int begin, int step, int* ranks) {
  int expected[kPart];
  for (int i = 0; i < count; i++) {
    expected[i] = begin + i * step;
    if (expected[i] < 0 || expected[i] >= world().size) return false;
  }
  MPI_Group part;
  if (host().Group_incl(all, count, expected, &part) != MPI_SUCCESS) return false;
  bool found = host().Group_translate_ranks(ours, count, own, part, ranks) == MPI_SUCCESS;
  for (int i = 0; found && i < count; i++) {
    found = ranks[i] != MPI_UNDEFINED;
    if (found) ranks[i] = expected[ranks[i]];
  }
  host().Group_free(&part);
  return found;
}

void translate(MPI_Group ours, int size, const int* own, MPI_Group all, int* ranks) {
  if (size <= kPart) {
    host().Group_translate_ranks(ours, size, own, all, ranks);
    return;
  }
  host().Group_translate_ranks(ours, 2, own, all, ranks);
  for (int at = 2; at < size; at += kPart) {
    const int count = size - at < kPart ? size - at : kPart;
    const int last = ranks[at - 1], before = ranks[at - 2];
    const bool known = last != MPI_UNDEFINED && before != MPI_UNDEFINED;
    const int step = last - before;
    if (known && translate_as_expected(ours, all, own + at, count, last + step, step, ranks + at)) continue;
    host().Group_translate_ranks(ours, count, own + at, all, ranks + at);
  }
}

}  // namespace

int* world_ranks(MPI_Comm comm, int size) {
  auto* const ranks = static_cast<int*>(std::malloc(2 * static_cast<std::size_t>(size) * sizeof(int)));
  if (ranks == nullptr) std::abort();  // a few bytes a rank, and the other ranks wait for this rank's word
  for (int r = 0; r < size; r++) ranks[r] = ranks[size + r] = r;
  if (comm == host().constants.comm_world) return ranks;
  for (int r = 0; r < size; r++) ranks[r] = MPI_UNDEFINED;
  MPI_Group ours, all;
  if (host().Comm_group(comm, &ours) != MPI_SUCCESS) return ranks;
  host().Comm_group(host().constants.comm_world, &all);
  translate(ours, size, ranks + size, all, ranks);
  host().Group_free(&ours);
  host().Group_free(&all);
  return ranks;
}

bool has_foreign(const int* ranks, int size) {
  bool foreign = false;
  for (int r = 0; r < size; r++) foreign = foreign || ranks[r] == MPI_UNDEFINED;
  return foreign;
}

}  // namespace stretto::mpi
