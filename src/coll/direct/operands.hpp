// SPDX-License-Identifier: BSD-3-Clause
// What a reduction works on. Two families, told apart by operation and datatype, which all ranks share:
//
//   Vector, Reduction     predefined operations on dense elements: kernels, in pieces, spread over ranks
//   Operands, Operation   user-defined operations, and what has no kernel: whole contributions, one after the other
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/region.hpp"

namespace stretto::coll::direct {

// out[i] = left[i] op right[i]; out may be left or right itself. Elements are dense, of a power of two up to 32 bytes.
struct Reduction {
  void (*fold)(void* out, const void* left, const void* right, std::size_t count) = nullptr;
  std::size_t element_bytes = 1;
  std::uint8_t op = 0;      // as in shm::Facts, for peers to compare
  ElementCode element = 0;
};

// What a rank brings and gets. `own` is what it contributes; `out` is where its result goes, perhaps the same memory.
struct Vector {
  const char* own = nullptr;
  char* out = nullptr;
  std::uint64_t bytes = 0;  // of the contribution
  bool good = true;
};

// `fold` makes each element of `inout` in op inout, for all elements of a contribution; it may call the user.
struct Operation {
  void* context = nullptr;
  void (*fold)(void* context, char* in, char* inout) = nullptr;
  std::uint8_t op = 0;      // as above
  ElementCode element = 0;
};

// Regions of one contribution each. `grown` and `arrived` are private memory of this rank, laid out as `own` is.
struct Operands {
  Region own;
  Region out;  // where this rank's result goes; empty if it gets none
  Region grown;
  Region arrived;
  bool good = true;
};

}  // namespace stretto::coll::direct
