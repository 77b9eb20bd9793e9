// SPDX-License-Identifier: BSD-3-Clause
// What schedules want of a caller's buffer: plain bytes, part after part. It is the buffer itself where it lies so, and
// a packed copy elsewhere. Lengths are what really travels; what the caller has declared may differ, which is an error,
// or more than needed.
#pragma once
#include <cstdlib>

#include "base/array.hpp"
#include "base/region.hpp"
#include "base/status.hpp"

namespace stretto::engine {

class PackedBuffer {
 public:
  PackedBuffer() = default;
  ~PackedBuffer() { std::free(copy_); }
  PackedBuffer(const PackedBuffer&) = delete;
  PackedBuffer& operator=(const PackedBuffer&) = delete;

  // What the caller sends, `bytes` bytes: those that it lacks are zero.
  char* from(const Region& region, std::uint64_t bytes);
  char* from(const Blocks& blocks, const std::uint64_t* begins, int ranks);
  // What the caller gets. Blocks [first, last) hold data already, or may not be filled: the bytes that do not come stay
  // as they are.
  char* to(const Region& region, std::uint64_t bytes, bool may_come_short = false);
  char* to(const Blocks& blocks, const std::uint64_t* begins, int ranks, int first, int last);

  [[nodiscard]] bool failed() const { return failed_; }  // for want of memory
  // Brings back what came. Truncated: it was longer than the caller has declared; other_length: the caller sent another
  // length.
  Status finish();

 private:
  char* copy(std::uint64_t bytes);
  bool lies_flat(const Blocks& blocks, const std::uint64_t* begins, int ranks, char** base) const;
  void compare(const Blocks& blocks, const std::uint64_t* begins, int ranks);

  char* copy_ = nullptr;
  bool failed_ = false;
  bool receives_ = false;
  bool differs_ = false;  // from what was declared, and matters
  Blocks blocks_{};       // a region is one block
  const std::uint64_t* begins_ = nullptr;
  std::uint64_t whole_[2] = {};
  int ranks_ = 0;
};

}  // namespace stretto::engine
