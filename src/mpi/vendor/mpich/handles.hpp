// SPDX-License-Identifier: BSD-3-Clause
// Handles of the MPICH ABI: ints, and the predefined ones are constants of mpi.h. Bits 30 and 31
// say how the object is stored: 0 not at all, 1 predefined. Bits 26 to 29 say what it is:
// 3 a datatype, 6 an operation, 11 a request.
#pragma once
#include <mpi.h>

#include <cstddef>
#include <cstdint>

// A predefined handle by both its names: STRETTO_HANDLE(MPI_Datatype, MPI_INT, ompi_mpi_int).
#define STRETTO_HANDLE(type, mpi_name, ompi_symbol) (static_cast<type>(mpi_name))

// Types that are predefined in this ABI only: rows of STRETTO_TYPES (mpi/data/operations.cpp).
#define STRETTO_TYPES_OF_ABI(X) X(MPI_INTEGER16, unused, Type::count_, false)

namespace stretto::mpi::vendor {

// A hash for tables of any handles.
inline std::size_t handle_hash(int handle) {
  const auto bits = static_cast<std::uintptr_t>(handle);
  return bits ^ (bits >> 8) ^ (bits >> 24);
}

// The same for tables of predefined handles only, which count up in their lowest byte.
inline std::size_t predefined_hash(int handle) { return static_cast<std::uintptr_t>(handle); }

constexpr bool is_object(int handle, unsigned what) {
  const auto bits = static_cast<std::uint32_t>(handle);
  return (bits >> 30) != 0 && ((bits >> 26) & 0xf) == what;
}

// Whether it may be a type. MPI_DATATYPE_NULL is not stored.
inline bool is_datatype(MPI_Datatype type, MPI_Datatype) { return is_object(type, 3); }

// Whether it may be an operation.
inline bool is_operation(MPI_Op op) { return is_object(op, 6); }

// Whether it may be a request. MPI_REQUEST_NULL is not stored.
inline bool is_request(MPI_Request request) { return is_object(request, 11); }

// Whether it is one of the host's own that operations.cpp does not name.
inline bool is_hosts_operation(MPI_Op op) { return static_cast<std::uint32_t>(op) >> 30 == 1; }

}  // namespace stretto::mpi::vendor
