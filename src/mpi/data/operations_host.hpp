// SPDX-License-Identifier: BSD-3-Clause
// What the host does with pairs of operation and type that MPI does not define. Stretto asks it
// once for each pair. Private to operations.cpp.
#pragma once
#include "base/signature.hpp"
#include "mpi/host/host.hpp"
#include "reduce/reduce.hpp"

namespace stretto::mpi {

struct KnownType {
  reduce::Type type;  // count_: it has no kernels
  bool padded;
  bool logical;
  std::uint8_t row;  // of the host's answers
  ElementCode element;
  std::size_t bytes;  // from element to element
};

// One answer for each type and operation. It depends on these and on the MPI alone, so it is
// the same on all ranks.
enum class Answer : std::uint8_t { unknown, host, function, first_kernel };  // first_kernel + a reduce::Type
inline constexpr std::size_t kMostTypes = 128;

inline bool is_logical(reduce::Op op) {
  return op == reduce::Op::land || op == reduce::Op::lor || op == reduce::Op::lxor;
}
inline bool is_arithmetic(reduce::Op op) { return op == reduce::Op::sum || op == reduce::Op::prod; }
inline bool is_floating(reduce::Type type) { return type >= reduce::Type::f32 && type <= reduce::Type::c80; }

// Asks the host once for each pair. Returns Answer::unknown if it cannot be asked now.
Answer host_answer(MPI_Op op, reduce::Op kind, MPI_Datatype type, const KnownType& known);

}  // namespace stretto::mpi
