// SPDX-License-Identifier: BSD-3-Clause
// The _c functions on a host that has none (MPICH before 4, and its relatives; or any host that is not ours): the
// library exports them all the same, so a program that looks for them at run time finds them. Then the host's int
// functions are called with the counts narrowed, and counts that do not fit are MPI_ERR_COUNT.
#pragma once
#include "mpi/entry.hpp"

namespace stretto::mpi {

// The counts of one call. Knows nothing of the ABI: handles stay integers.
class Narrow {
 public:
  explicit Narrow(Handle comm);
  ~Narrow();
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;

  // Significant everywhere, or at the root only (`root` is the call's). An array has an entry for each rank.
  int operator()(std::int64_t count);
  int at_root(std::int64_t count, int root) { return is_root(root) ? (*this)(count) : 0; }
  const int* everywhere(const std::int64_t* wide);
  const int* at_root(const std::int64_t* wide, int root) { return is_root(root) ? everywhere(wide) : nullptr; }
  // MPI_SUCCESS, or what went wrong, raised on the communicator.
  int verdict();

 private:
  [[nodiscard]] bool is_root(int root) const;

  Handle comm_;
  int rank_ = 0, size_ = 0;  // of the group that arrays speak of
  bool inter_ = false;
  bool fits_ = true;
  int* arrays_[4] = {};
  int used_ = 0;
};

}  // namespace stretto::mpi
