// SPDX-License-Identifier: BSD-3-Clause
// A process's processors, and the kernel's lists of processors. Only files of sys use this header.
#pragma once
#include <cstdlib>

#include "sys/detail.hpp"

namespace stretto::sys::detail {

// Calls `each(first, last)` for every range of a list such as "0-3,8,10-11".
template <class Each>
void each_range(const char* list, Each each) {
  while (*list >= '0' && *list <= '9') {
    char* end = nullptr;
    const long first = std::strtol(list, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    each(first, last);
    list = *end == ',' ? end + 1 : end;
  }
}

// The processors of a mask as sched_getaffinity writes it.
class CpuSet {
 public:
  CpuSet(const std::uint64_t* mask, std::size_t words) : mask_(mask), words_(words) {
    for (std::size_t i = 0; i < words; ++i) {
      if (mask[i] != 0 && first_ < 0) first_ = static_cast<int>(64 * i) + __builtin_ctzll(mask[i]);
      count_ += __builtin_popcountll(mask[i]);
    }
  }
  [[nodiscard]] bool has(long cpu) const { return (mask_[cpu / 64] >> (cpu % 64) & 1) != 0; }
  [[nodiscard]] int first() const { return first_; }  // -1: the set is empty
  [[nodiscard]] int count() const { return count_; }
  // How many of its processors are in `list`.
  [[nodiscard]] int held_by(const char* list) const {
    int held = 0;
    each_range(list, [&](long first, long last) {
      for (long cpu = first; cpu <= last && cpu < static_cast<long>(64 * words_); ++cpu) held += has(cpu) ? 1 : 0;
    });
    return held;
  }

 private:
  const std::uint64_t* mask_;
  std::size_t words_;
  int first_ = -1;
  int count_ = 0;
};

// Reads the mask of this process. Returns its length in words, 0 when unknown.
std::size_t own_processors(Mask& mask);

}  // namespace stretto::sys::detail
