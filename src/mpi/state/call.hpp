// SPDX-License-Identifier: BSD-3-Clause
// One call of a collective. This file does not include mpi.h.
#pragma once
#include <cstdint>

#include "mpi/host/entry.hpp"

namespace stretto::mpi {

// An array of counts or displacements: int, or 64-bit in the _c family.
struct CountArray {
  const void* data;
  bool wide;
  CountArray(const int* narrow, bool) : data(narrow), wide(false) {}
  CountArray(const std::int64_t* large, bool) : data(large), wide(true) {}
};

struct Snapshot;   // check.hpp
struct Requested;  // requests.hpp

// One call on its way through Stretto.
struct Call {
  Entry entry;
  std::uint64_t began_ns = 0;      // STRETTO_STATS
  int code = 0;                    // MPI_SUCCESS or the error code to return
  State* state = nullptr;          // null: the host judges the communicator
  Snapshot* snapshot = nullptr;    // STRETTO_CHECK=3: compare with the host's result
  Requested* requested = nullptr;  // of a nonblocking call
  std::uint64_t note = 0;          // the note of a call that shared memory does not serve
  bool to_memory = false;          // a rule gives the call to shared memory, although the communicator has schedules

  [[nodiscard]] Collective collective() const { return kEntryFacts[static_cast<int>(entry)].collective; }
};

}  // namespace stretto::mpi
