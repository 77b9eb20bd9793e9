// SPDX-License-Identifier: BSD-3-Clause
// The _c functions on a host that has none: MPICH before 4 and its relatives, or any host whose
// ABI is not ours. Stretto exports these functions always, so a program that looks for them at run
// time finds them. They narrow the counts and call the host's int functions. Counts that do not
// fit give MPI_ERR_COUNT.
#pragma once
#include "mpi/host/entry.hpp"

namespace stretto::mpi {

// The counts of one call. It does not depend on the ABI: handles stay integers.
class Narrow {
 public:
  // Who needs the arrays: the call alone, or also the request that it makes. MPI does not tell when
  // a request of the host's has ended, so such arrays stay until the process ends. Programs use the
  // same arrays again and again, and equal ones share memory.
  enum class Arrays : bool { of_call, kept };
  explicit Narrow(Handle comm, Arrays arrays = Arrays::of_call);
  ~Narrow();
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;

  // Counts that are significant on every rank, or at the call's root only. An array has
  // an entry for each rank.
  int operator()(std::int64_t count);
  int at_root(std::int64_t count, int root) { return is_root(root) ? (*this)(count) : 0; }
  const int* everywhere(const std::int64_t* wide) { return array(wide, size_); }
  const int* at_root(const std::int64_t* wide, int root) { return is_root(root) ? everywhere(wide) : nullptr; }
  // Arrays with an entry for each neighbour.
  const int* at_sources(const std::int64_t* wide) { return array(wide, neighbors(true)); }
  const int* at_destinations(const std::int64_t* wide) { return array(wide, neighbors(false)); }
  // Returns MPI_SUCCESS, or MPI_ERR_COUNT after it has raised that on the communicator.
  int verdict();

 private:
  [[nodiscard]] bool is_root(int root) const;
  [[nodiscard]] int neighbors(bool sources) const;
  const int* array(const std::int64_t* wide, int entries);

  Handle comm_;
  bool keeps_;
  int rank_ = 0, size_ = 0;  // of this rank, and of the group for which arrays have entries
  bool inter_ = false;
  bool fits_ = true;
  int* arrays_[4] = {};
  int used_ = 0;
};

// A count of a call that only goes on to the host's int function. Where it does not fit, it becomes
// -1: the host refuses that as a wrong count, by the error handler of the right object.
inline int narrowed(std::int64_t count) { return count == static_cast<int>(count) ? static_cast<int>(count) : -1; }

// A count that the host changes.
class NarrowPlace {
 public:
  explicit NarrowPlace(std::int64_t* wide) : wide_(wide), narrow_(wide != nullptr ? narrowed(*wide) : 0) {}
  ~NarrowPlace() {
    if (wide_ != nullptr && narrow_ >= 0) *wide_ = narrow_;
  }
  NarrowPlace(const NarrowPlace&) = delete;
  NarrowPlace& operator=(const NarrowPlace&) = delete;
  int* place() { return wide_ != nullptr ? &narrow_ : nullptr; }

 private:
  std::int64_t* wide_;
  int narrow_;
};

}  // namespace stretto::mpi
