// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::engine {

// Where parts begin, one for each rank. Few need no memory from the heap.
class Begins {
 public:
  // False: no memory.
  template <class LengthOf>
  bool fill(int ranks, LengthOf length_of) {
    is_few_ = ranks <= kFew;
    if (!is_few_ && !many_.resize(static_cast<std::size_t>(ranks) + 1, 0)) return false;
    std::uint64_t* const begins = is_few_ ? few_ : many_.data();
    begins[0] = 0;
    for (int r = 0; r < ranks; ++r) begins[r + 1] = begins[r] + length_of(r);
    return true;
  }
  [[nodiscard]] const std::uint64_t* get() const { return is_few_ ? few_ : many_.data(); }
  [[nodiscard]] std::uint64_t length(int rank) const { return get()[rank + 1] - get()[rank]; }

 private:
  static constexpr int kFew = 64;
  bool is_few_ = true;
  std::uint64_t few_[kFew + 1];  // NOLINT: fill() writes what is read
  Array<std::uint64_t> many_;
};

}  // namespace stretto::engine
