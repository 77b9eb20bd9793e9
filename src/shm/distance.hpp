// SPDX-License-Identifier: BSD-3-Clause
// How far away a reader's cache is, as its writer feels it: the time to load a line that the reader
// has just written.
//
// Why. A writer stores to a slot again and again, and another processor reads it in between. Where
// both share a cache, the line comes out of it quickly. Where they do not, every store waits until
// the reader's cache has given the line up. Every load of the reader waits until the writer's cache
// has. On an EPYC an Allgather of 256 KiB then takes 172 us, against 58 by memory
// (docs/figures.md). So a writer stores past the caches what goes to a far reader (base/copy.hpp,
// copy_past).
//
// Nothing tells a writer which of the two it is: virtual processors move, and so do threads that
// are not bound. So the writer measures now and then. It changes its mind when several measurements
// in a row say so. Readers do the same in either case.
#pragma once
#include <cstdint>

#include "base/tuning.hpp"

namespace stretto::shm {

class Distance {
 public:
  [[nodiscard]] bool is_far() const { return far_; }

  // A load of the line took so long. A load from the own cache says nothing: the reader has written
  // nothing since.
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
