// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/touched.hpp"

#include <algorithm>

#include "mpi/host/host.hpp"
#include "mpi/overlap/overlap.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

// A null buffer needs no case of its own: the elements say where they are.
static_assert(MPI_BOTTOM == nullptr);

std::int64_t entry(const CountArray& array, int rank) {
  return array.wide ? static_cast<const std::int64_t*>(array.data)[rank] : static_cast<const int*>(array.data)[rank];
}

struct Extent {
  MPI_Count bytes = 0, true_begin = 0, true_bytes = 0;
};

bool ask(MPI_Datatype type, Extent* extent) {
  MPI_Count begin = 0;
  return vendor::is_datatype(type, host().constants.datatype_null) &&
         host().Type_get_extent_x(type, &begin, &extent->bytes) == MPI_SUCCESS &&
         host().Type_get_true_extent_x(type, &extent->true_begin, &extent->true_bytes) == MPI_SUCCESS;
}

}  // namespace

Touched::Touched()
    : waits_(t_thread.depth == 0 && g_mode.load(std::memory_order_acquire) == Mode::serving && overlap_any_away()) {}

Touched::Touched(Handle handle) : Touched() {
  if (!waits_) return;
  const auto comm = (MPI_Comm)handle;
  int inter = 0;
  const bool known = comm != MPI_Comm{} && comm != host().constants.comm_null &&
                     host().Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter == 0 &&
                     host().Comm_rank(comm, &rank_) == MPI_SUCCESS && host().Comm_size(comm, &ranks_) == MPI_SUCCESS;
  if (known) return;
  everything();
  waits_ = false;
}

void Touched::everything() const {
  if (waits_) overlap_complete_all();
}

void Touched::bytes(const void* buffer, std::int64_t bytes) const {
  if (waits_ && bytes > 0) overlap_complete(buffer, static_cast<std::uint64_t>(bytes));
}

void Touched::elements(const void* buffer, std::int64_t count, Handle type) const {
  if (count > 0) span(buffer, 0, count - 1, type);
}

void Touched::each(const void* buffer, std::int64_t count, Handle type) const {
  std::int64_t all = 0;
  if (__builtin_mul_overflow(count, ranks_, &all)) return everything();
  elements(buffer, all, type);
}

void Touched::sum(const void* buffer, CountArray counts, Handle type) const {
  if (!waits_ || counts.data == nullptr) return;
  std::int64_t all = 0;
  for (int r = 0; r < ranks_; ++r) {
    if (__builtin_add_overflow(all, std::max<std::int64_t>(entry(counts, r), 0), &all)) return everything();
  }
  elements(buffer, all, type);
}

void Touched::blocks(const void* buffer, CountArray counts, CountArray displacements, Handle type) const {
  if (!waits_ || buffer == MPI_IN_PLACE || counts.data == nullptr || displacements.data == nullptr) return;
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (int r = 0; r < ranks_; ++r) {
    const std::int64_t count = entry(counts, r), begin = entry(displacements, r);
    std::int64_t end = 0;
    if (count <= 0) continue;
    if (__builtin_add_overflow(begin, count - 1, &end)) return everything();
    first = std::min(first, begin);
    last = std::max(last, end);
  }
  if (first <= last) span(buffer, first, last, type);
}

// The memory from element `first` to element `last`. An extent may be negative.
void Touched::span(const void* buffer, std::int64_t first, std::int64_t last, Handle type) const {
  if (!waits_ || buffer == MPI_IN_PLACE) return;
  Extent extent;
  std::int64_t one = 0, other = 0, begin = 0, length = 0;
  const bool known = ask((MPI_Datatype)type, &extent) && !__builtin_mul_overflow(first, extent.bytes, &one) &&
                     !__builtin_mul_overflow(last, extent.bytes, &other) &&
                     !__builtin_add_overflow(std::min(one, other), extent.true_begin, &begin) &&
                     !__builtin_add_overflow(std::max(one, other) - std::min(one, other), extent.true_bytes, &length);
  if (!known) return everything();
  bytes(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(begin)),
        length);
}

}  // namespace stretto::mpi
