// SPDX-License-Identifier: BSD-3-Clause
// Handles of the standard ABI: pointers. Those of predefined objects are numbers of at most 10
// bits, which the standard names. The others are the host's, and point to what only it knows.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>

// A predefined handle by both its names: STRETTO_HANDLE(MPI_Datatype, MPI_INT, ompi_mpi_int).
#define STRETTO_HANDLE(type, mpi_name, ompi_symbol) (static_cast<type>(mpi_name))

// Types that are predefined in this ABI only: rows of STRETTO_TYPES (mpi/data/operations.cpp).
// clang-format off
#define STRETTO_TYPES_OF_ABI(X)                      \
  X(MPI_LOGICAL1,  unused, Type::count_, false)      \
  X(MPI_LOGICAL2,  unused, Type::count_, false)      \
  X(MPI_LOGICAL4,  unused, Type::count_, false)      \
  X(MPI_LOGICAL8,  unused, Type::count_, false)      \
  X(MPI_LOGICAL16, unused, Type::count_, false)      \
  X(MPI_INTEGER16, unused, Type::count_, false)      \
  X(MPI_REAL2,     unused, Type::count_, false)      \
  X(MPI_COMPLEX4,  unused, Type::count_, false)
// clang-format on

namespace stretto::mpi::vendor {

inline constexpr std::uintptr_t kFirstOfHosts = 0x1000;  // no object of the host is in the first page of memory

template <class Handle>
std::uintptr_t handle_bits(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

// A hash for tables of any handles.
template <class Handle>
std::size_t handle_hash(Handle handle) {
  const std::uintptr_t bits = handle_bits(handle);
  return bits ^ (bits >> 6) ^ (bits >> 14);
}

// The same for tables of predefined handles only. Those of one kind differ in their lowest byte.
template <class Handle>
std::size_t predefined_hash(Handle handle) {
  return handle_bits(handle);
}

// Whether it may be a type. Predefined ones are from 0x200 to 0x2ff, and the first one is
// MPI_DATATYPE_NULL.
inline bool is_datatype(MPI_Datatype type, MPI_Datatype) {
  const std::uintptr_t bits = handle_bits(type);
  return bits >= kFirstOfHosts || (bits > 0x200 && bits < 0x300);
}

// Whether it may be an operation. Predefined ones are from 0x20 to 0x3f, and the first one is
// MPI_OP_NULL.
inline bool is_operation(MPI_Op op) {
  const std::uintptr_t bits = handle_bits(op);
  return bits >= kFirstOfHosts || (bits > 0x20 && bits < 0x40);
}

// Whether it is one of the host's own that operations.cpp does not name.
inline bool is_hosts_operation(MPI_Op op) { return handle_bits(op) < kFirstOfHosts; }

}  // namespace stretto::mpi::vendor
