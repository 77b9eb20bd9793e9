// SPDX-License-Identifier: BSD-3-Clause
// How far away a reader's cache is, as its writer feels it: the time to load a line that the reader has just written.
//
// Why. A slot is written again and again, and read by another processor in between. Where both share a cache, the line
// comes out of it quickly. Where they do not, every store waits until the reader's cache has given the line up, and
// every load of the reader until the writer's has: on an EPYC an Allgather of 256 KiB then takes 172 us, against 58 by
// memory (docs/figures.md). So what goes to a far reader is written past the caches (base/copy.hpp, copy_past). Which
// it is nobody says: virtual processors move, and threads that are not bound do. So the writer measures, now and then,
// and changes its mind when several measurements in a row say so. Whatever it does, readers do the same.
#pragma once
#include <cstdint>

#include "base/tuning.hpp"

namespace stretto::shm {

class Distance {
 public:
  [[nodiscard]] bool is_far() const { return far_; }

  // The line took so long. Out of the own cache it says nothing: the reader has written nothing since.
  void took(std::uint64_t ns, std::uint64_t far_ns) {
    if (ns < kTuning.own_cache_ns) return;
    doubts_ = (ns >= far_ns) == far_ ? 0 : doubts_ + 1;
    if (doubts_ < (far_ ? kTuning.near_in_a_row : kTuning.far_in_a_row)) return;
    far_ = !far_;
    doubts_ = 0;
  }

 private:
  bool far_ = false;
  unsigned doubts_ = 0;  // measurements in a row that say otherwise
};

}  // namespace stretto::shm
