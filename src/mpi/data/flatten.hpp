// SPDX-License-Identifier: BSD-3-Clause
// The walk from a datatype's constructors to its runs (datatype.hpp says what for).
#pragma once
#include <mpi.h>

#include <cstdlib>

#include "base/region.hpp"

namespace stretto::mpi {

// Runs in send order. A run that begins where the run before ends is merged with it.
class RunList {
 public:
  RunList() = default;
  explicit RunList(std::size_t limit) : limit_(limit) {}
  RunList(const RunList&) = delete;
  RunList& operator=(const RunList&) = delete;
  ~RunList() { std::free(runs_); }

  // Appends `count` copies of `bytes` bytes, the first at `offset`, each `stride` after the one
  // before. Returns false if the list is full or there is no memory.
  bool append(std::ptrdiff_t offset, std::size_t bytes, std::uint64_t count = 1, std::ptrdiff_t stride = 0);
  // Appends `count` copies of a whole element.
  bool append(const RunList& element, std::ptrdiff_t offset, std::uint64_t count, std::ptrdiff_t stride);
  void clear() {
    count_ = 0;
    signature_ = {};
  }

  [[nodiscard]] const Run* data() const { return runs_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t limit() const { return limit_; }
  // The signature of the appended elements. Plain runs have none: the caller adds it with sign().
  [[nodiscard]] const Signature& signature() const { return signature_; }
  void sign(const Signature& signature) { signature_.append(signature, 1); }

 private:
  bool append_one(std::ptrdiff_t offset, std::size_t bytes);
  bool grow();

  Run* runs_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
  std::size_t limit_ = ~std::size_t{0};
  Signature signature_;
};

enum class Flattened {
  ok,
  opaque,   // too many runs, or a constructor that this walk does not know: the host must pack the data
  invalid,  // the host does not take the handle
};

// Appends the runs of one element of `type` to `runs`. Sets `*predefined` if the
// type is a named one.
Flattened flatten(MPI_Datatype type, RunList& runs, bool* predefined);

}  // namespace stretto::mpi
