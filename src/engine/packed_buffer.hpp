// SPDX-License-Identifier: BSD-3-Clause
// A caller's buffer as schedules need it: plain bytes, one part after the other. It is the
// buffer itself if it has this form, otherwise a packed copy. The lengths given here are
// those of the messages. It is an error if a send buffer declares another length, or a
// receive buffer a shorter one.
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

  // The `bytes` bytes that the caller sends. Bytes that the caller's buffer lacks are zero.
  char* from(const Region& region, std::uint64_t bytes);
  char* from(const Blocks& blocks, const std::uint64_t* begins, int ranks);
  // The bytes that the caller gets. Blocks [first, last) hold data already, or may not be filled:
  // bytes that do not come stay as they are.
  char* to(const Region& region, std::uint64_t bytes, bool may_come_short = false);
  char* to(const Blocks& blocks, const std::uint64_t* begins, int ranks, int first, int last);

  [[nodiscard]] bool failed() const { return failed_; }  // there is no memory
  // Unpacks what came. Returns `truncated` if it was longer than the caller has declared, and
  // `other_length` if the caller sent another length than declared.
  Status finish();

 private:
  char* copy(std::uint64_t bytes);
  bool lies_flat(const Blocks& blocks, const std::uint64_t* begins, int ranks, char** base) const;
  void compare(const Blocks& blocks, const std::uint64_t* begins, int ranks);

  char* copy_ = nullptr;
  bool failed_ = false;
  bool receives_ = false;
  bool differs_ = false;  // a declared length is wrong
  Blocks blocks_{};       // a region is one block
  const std::uint64_t* begins_ = nullptr;
  std::uint64_t whole_[2] = {};
  int ranks_ = 0;
};

}  // namespace stretto::engine
