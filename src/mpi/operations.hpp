// SPDX-License-Identifier: BSD-3-Clause
// Who combines: from an MPI_Op and a datatype, both of which all ranks share, to the way a reduction goes.
#pragma once
#include <mpi.h>

#include <cstddef>

#include "base/signature.hpp"
#include "mpi/entry.hpp"
#include "reduce/reduce.hpp"

namespace stretto::mpi {

struct Combining {
  enum class By : std::uint8_t {
    kernel,  // a predefined operation on dense elements
    padded,  // the same on elements with gaps, which must keep what they hold: whole contributions, element by element
    function,  // a predefined operation on a type that only the host knows, by its MPI_Reduce_local
    user,      // a user-defined operation, by the same
    host,      // a predefined operation that the host does, or refuses, as nobody else would; or on a derived type
    nobody,    // not an operation
  };
  By by = By::nobody;
  bool rounds =
      false;  // the result may depend on the order: sums and products of floating-point numbers, a user's operation
  reduce::Op op{};      // the rest: by kernel or padded
  reduce::Type type{};  // that of the kernels: it may be another integer than the handle's name says
  reduce::Kernel two = nullptr;
  reduce::Kernel3 three = nullptr;
  std::uint8_t code = 0;          // of the operation, for peers to compare: shm::CallDescriptor::op
  ElementCode element = 0;        // of `type`
  std::size_t element_bytes = 0;  // of `type`, also where the operation is not one; 0: no type that kernels know
};

// The signature of a predefined type; unknown for types that no reduction takes, but for those of single bytes.
Signature signature_of(MPI_Datatype type, std::size_t bytes);

// Two look-ups in small tables. Pairs that MPI does not define are served as the MPI at hand does them, if it accepts
// them: what it says and computes is asked once a pair, and is the same on all ranks.
Combining look_up(MPI_Op op, MPI_Datatype type);

// What the tables said of this thread's last operation and type, if both are predefined: they mean the same for ever.
// All zero is no handle, and `Combining{}` says so.
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
