// SPDX-License-Identifier: BSD-3-Clause
// Calls of which no rank knows how long they are for the others: Gatherv, Scatterv, Alltoallv,
// Alltoallw. Which way a call goes must follow from what all ranks know, or they would wait for one
// another. So the members agree now and then how long such calls have been of late. If all were
// short, the next ones go without overlap, whatever their length.
//
//   call      0       1 .. 8              9       10 .. 25            26      ...
//             agree   as agreed then      agree   as agreed then      agree   at most 256 between
//
// All members count the same calls, and agree before the same ones. The call before which they
// agree counts, too: each says how long it is as far as it knows.
#pragma once
#include <algorithm>
#include <cstdint>

namespace stretto::mpi {

class ShortCalls {
 public:
  // A call begins. True: the members are to tell each other longest(), and then agree().
  bool begins(std::uint64_t bytes) {
    longest_ = std::max(longest_, bytes);
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  // As far as this rank knows, since the members last agreed.
  [[nodiscard]] std::uint64_t longest() const { return longest_; }
  void agree(bool are_short) {
    are_short_ = are_short;
    left_ = period_;
    period_ = std::min(2 * period_, kMostBetween);
    longest_ = 0;
  }
  // What this call and those up to the next agreement are taken for.
  [[nodiscard]] bool are_short() const { return are_short_; }

 private:
  static constexpr std::uint32_t kLeastBetween = 8, kMostBetween = 256;
  std::uint64_t longest_ = 0;
  std::uint32_t left_ = 0, period_ = kLeastBetween;
  bool are_short_ = false;
};

}  // namespace stretto::mpi
