// SPDX-License-Identifier: BSD-3-Clause
// Who combines in a reduction. Its MPI_Op and datatype decide, which are the same on all ranks.
#pragma once
#include <mpi.h>

#include <cstddef>

#include "base/signature.hpp"
#include "mpi/host/entry.hpp"
#include "reduce/reduce.hpp"

namespace stretto::mpi {

struct Combining {
  enum class By : std::uint8_t {
    kernel,    // our kernels: a predefined operation on dense elements
    padded,    // our kernels, element by element on whole contributions: elements have gaps, which must not change
    function,  // the host's MPI_Reduce_local: a predefined operation on a type that only the host knows
    user,      // the host's MPI_Reduce_local: a user-defined operation
    host,      // the host, which serves or refuses the whole call: other predefined operations, or derived types
    nobody,    // not an operation
  };
  By by = By::nobody;
  // Whether the result may depend on the order: sums and products of floating-point numbers, and
  // the program's own operations.
  bool rounds = false;
  reduce::Op op{};      // with `type`, `two` and `three`: for By::kernel and By::padded
  reduce::Type type{};  // the kernels' type: it may be another integer than the handle's name says
  reduce::Kernel two = nullptr;
  reduce::Kernel3 three = nullptr;
  std::uint8_t code = 0;          // of the operation, which peers compare: shm::CallDescriptor::op
  ElementCode element = 0;        // of the datatype
  std::size_t element_bytes = 0;  // of the datatype, even if `op` is not an operation; 0: not a type of the table
};

// The signature of a predefined type. It is unknown for types that no reduction takes, except
// those of single bytes.
Signature signature_of(MPI_Datatype type, std::size_t bytes);

// Makes two look-ups in small tables. A pair that MPI does not define is served as the host does
// it, if the host accepts it. Stretto asks once a pair what the host accepts and computes, which is
// the same on all ranks.
Combining look_up(MPI_Op op, MPI_Datatype type);

// What the tables say of this thread's last operation and type, if both are predefined:
// their meaning never changes. At first all fields are zero: no handle is zero, and
// `Combining{}` is not an operation.
struct RecentOperation {
  MPI_Op op;
  MPI_Datatype type;
  Combining combining;
};
extern thread_local constinit RecentOperation t_operation STRETTO_TLS;

// The handles need not be valid.
inline Combining combining_of(MPI_Op op, MPI_Datatype type) {
  if (t_operation.op == op && t_operation.type == type) [[likely]]
    return t_operation.combining;
  return look_up(op, type);
}

}  // namespace stretto::mpi
