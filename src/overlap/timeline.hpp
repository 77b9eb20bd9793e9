// SPDX-License-Identifier: BSD-3-Clause
// When a site's calls took their time.
#pragma once
#include "base/binned_time.hpp"

namespace stretto::overlap {

struct TimelineBin {
  std::uint64_t in_call_ns = 0, late_ns = 0, waited_ns = 0;  // as SiteCounts
  TimelineBin& operator+=(const TimelineBin& more) {
    in_call_ns += more.in_call_ns;
    late_ns += more.late_ns;
    waited_ns += more.waited_ns;
    return *this;
  }
};

struct Timeline : BinnedTime<TimelineBin, 128> {
  using Bin = TimelineBin;
};

}  // namespace stretto::overlap
