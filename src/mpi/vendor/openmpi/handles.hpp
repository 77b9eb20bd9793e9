// SPDX-License-Identifier: BSD-3-Clause
// Handles of the Open MPI ABI: pointers to the host's objects. The predefined ones are addresses of
// symbols, which a library that links to no MPI looks up by name.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>

// A predefined handle by both its names: STRETTO_HANDLE(MPI_Datatype, MPI_INT, ompi_mpi_int). Null
// if this host lacks it.
#define STRETTO_HANDLE(type, mpi_name, ompi_symbol) (reinterpret_cast<type>(::stretto::mpi::host_symbol(#ompi_symbol)))

// Types that are predefined in this ABI only: rows of STRETTO_TYPES (mpi/data/operations.cpp).
#define STRETTO_TYPES_OF_ABI(X)                            \
  X(MPI_LOGICAL1, ompi_mpi_logical1, Type::count_, false)  \
  X(MPI_LOGICAL2, ompi_mpi_logical2, Type::count_, false)  \
  X(MPI_LOGICAL4, ompi_mpi_logical4, Type::logical4, true) \
  X(MPI_LOGICAL8, ompi_mpi_logical8, Type::count_, false)

namespace stretto::mpi::vendor {

// A hash for tables of any handles.
template <class Handle>
std::size_t handle_hash(Handle handle) {
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  return (bits >> 6) ^ (bits >> 14);
}

// The same for tables of predefined handles only.
template <class Handle>
std::size_t predefined_hash(Handle handle) {
  return handle_hash(handle);
}

// Whether it may be a type. `null` is MPI_DATATYPE_NULL.
inline bool is_datatype(MPI_Datatype type, MPI_Datatype null) { return type != nullptr && type != null; }

// Whether it may be an operation.
inline bool is_operation(MPI_Op op) { return op != nullptr; }

// Whether it is one of the host's own that operations.cpp does not name. This ABI has none.
inline bool is_hosts_operation(MPI_Op) { return false; }

}  // namespace stretto::mpi::vendor
