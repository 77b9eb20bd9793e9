// SPDX-License-Identifier: BSD-3-Clause
// Which memory a call of the program touches, while data of calls that returned early are still to
// come (STRETTO_OVERLAP).
//
// Loads and stores wait for such data. The MPI might not: its peers read a buffer by
// process_vm_readv, its threads and devices get pages from the kernel, and a thread that sleeps
// drives no progress. So each function of MPI with a buffer first waits for the data of that
// memory. MPI_Start and its like use buffers that they do not name, and wait for everything.
//
// The wrappers are generated. Without pending data they cost a load and a branch. They see handles
// as integers, and this file does not include mpi.h.
#pragma once
#include "mpi/overlap/deferring.hpp"
#include "mpi/state/call.hpp"

namespace stretto::mpi {

// The buffers of one call. Each function returns when the data of that memory are there. Too much
// memory does no harm: the call waits longer. Where the memory is not known, it waits for
// everything. Wrong arguments are for the host to judge: nulls are not handed to it from here. In a
// call that Stretto makes itself all is there already: nothing waits.
class Touched {
 public:
  Touched();
  explicit Touched(Handle comm);  // a collective: buffers may have elements for each rank

  // Whether this rank is the root. Other ranks may pass anything for what only the root needs.
  [[nodiscard]] bool at(int root) const { return waits_ && rank_ == root; }
  void elements(const void* buffer, std::int64_t count, Handle type) const;
  // So many elements for each rank.
  void each(const void* buffer, std::int64_t count, Handle type) const;
  // An array has an entry for each rank.
  void blocks(const void* buffer, CountArray counts, CountArray displacements, Handle type) const;
  // The blocks follow one another.
  void sum(const void* buffer, CountArray counts, Handle type) const;
  void bytes(const void* buffer, std::int64_t bytes) const;
  void everything() const;

 private:
  void span(const void* buffer, std::int64_t first, std::int64_t last, Handle type) const;

  bool waits_;
  Inside inside_;
  int rank_ = 0, ranks_ = 1;
};

}  // namespace stretto::mpi
