// SPDX-License-Identifier: BSD-3-Clause
// What a reduction works on. There are two families. Operation and datatype, which all ranks share,
// tell them apart:
//
//   KernelArgs, KernelOp      predefined operations on dense elements: kernels
//   FunctionArgs, FunctionOp  user-defined operations, and all that has no kernel: elements as the
//                             datatype lays them out
//
// Both combine from left to right in rank order, ((c0 op c1) op c2) op ..., each element by itself.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/region.hpp"

namespace stretto::coll_shm {

// out[i] = left[i] op right[i]. `out` may be `left` or `right` itself. Elements are dense; their
// size is a power of two up to 32 bytes.
struct KernelOp {
  void (*fold)(void* out, const void* left, const void* right, std::size_t count) = nullptr;
  std::size_t element_bytes = 1;
  std::uint8_t op = 0;  // as in shm::CallDescriptor, for peers to compare
  ElementCode element = 0;
  bool rounds = false;  // the result depends on the order of combining
  // Contributions may change places.
  bool commutative = true;
};

// What a rank brings and gets. `own` is what it contributes. `out` is where its result goes,
// perhaps the same memory.
struct KernelArgs {
  const char* own = nullptr;
  char* out = nullptr;
  std::uint64_t bytes = 0;  // of the contribution
  bool good = true;
};

// `fold` makes each of `count` elements of `inout` in op inout. It may call the user's function.
struct FunctionOp {
  void* context = nullptr;
  void (*fold)(void* context, char* in, char* inout, std::uint64_t count) = nullptr;
  std::uint8_t op = 0;  // as in shm::CallDescriptor, for peers to compare
  ElementCode element = 0;
  bool commutative = false;  // only schedules use it
  bool rounds = true;        // the result depends on the order of combining
};

// So many elements of that size are combined at once.
constexpr std::uint64_t elements_at_once(std::uint64_t element_bytes) {
  constexpr std::uint64_t kPieceBytes = 32 << 10;
  return element_bytes == 0 || element_bytes > kPieceBytes ? 1 : kPieceBytes / element_bytes;
}

// Regions of one layout. `grown` and `arrived` are private memory of this rank for
// elements_at_once() elements. If a contribution has fewer, they have as many.
struct FunctionArgs {
  Region own;
  Region out;  // where this rank's result goes; empty if it gets none
  Region grown;
  Region arrived;
  bool good = true;
};

}  // namespace stretto::coll_shm
