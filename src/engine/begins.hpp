// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::engine {

// Where parts begin.
class Begins {
 public:
  template <class LengthOf>
  bool fill(int ranks, LengthOf length_of) {
    if (!begins_.resize(static_cast<std::size_t>(ranks) + 1, 0)) return false;
    for (int r = 0; r < ranks; ++r) begins_[r + 1] = begins_[r] + length_of(r);
    return true;
  }
  [[nodiscard]] const std::uint64_t* get() const { return begins_.data(); }
  [[nodiscard]] std::uint64_t length(int rank) const { return begins_[rank + 1] - begins_[rank]; }

 private:
  Array<std::uint64_t> begins_;
};

}  // namespace stretto::engine
