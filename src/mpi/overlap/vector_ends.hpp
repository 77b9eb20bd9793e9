// SPDX-License-Identifier: BSD-3-Clause
// The ends of an Allreduce's vector, which the program's thread combines itself, by messages of the
// MPI, while the driver combines all that lies between.
//
// Why: an early return waits for the bytes that have no page of their own, at both ends of the
// vector. Around a ring they come after 2 (P - 1) messages, each of which waits for what the system
// has of the driver's data. By recursive doubling they come after about log2 P short messages.
//
// What they show: all members are in the call (docs/adr/0029-early-return.md). Each of them gives
// its messages to its driver soon, whatever becomes of the ends (Pending::begin_with_ends).
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "coll/shm/arguments.hpp"
#include "overlap/exchange.hpp"
#include "sched/execute.hpp"

namespace stretto::mpi {

class VectorEnds {
 public:
  static constexpr std::uint64_t kBytes = 4096;  // of each end: a page, and whole elements

  // All members know the length.
  static bool has(std::uint64_t bytes) { return bytes >= 16 * kBytes; }

  // The member whose ends they are. False: no memory.
  bool prepare(int rank, int size);
  // Takes this rank's contribution.
  void pack(const char* vector, std::uint64_t bytes);
  // Combines those of all members, by a transport on which nothing is under way. Memory may be in
  // use still after an error.
  Status combine(const coll_shm::KernelOp& reduction, const transport::Transport& by, const overlap::Ends::Wait& wait);
  // The vector's begin, then its end.
  [[nodiscard]] const char* result() const { return memory_.data() + 2 * kBytes; }

 private:
  bool prepared_ = false;
  sched::Program program_;
  sched::Execution execution_;
  Array<char> memory_;  // contribution, result, what the program needs
};

}  // namespace stretto::mpi
