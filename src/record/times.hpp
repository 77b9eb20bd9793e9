// SPDX-License-Identifier: BSD-3-Clause
// How times are kept: on a scale of logarithms, and only where they differ from what is expected.
//
// What is expected of a term is its last explicit time. A time that is near it is not kept, as long
// as the sum of all times stays within the bound, which is a part of what has passed in the last
// kRecent times or so. A time that is kept takes with it what was left out before. So each sum from
// the beginning on is right within the bound, and a single time within kNear, or within the scale.
// Ranks whose sums were off by a part of the whole run would wait for each other in a replay.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "record/format.hpp"

namespace stretto::record {

inline constexpr double kRecent = 512;
// A single time that is left out is so near to what is expected, as a part of it.
inline constexpr double kNear = 0.3;
// And times so short are near each other, in ticks of the counter.
inline constexpr double kShort = 256;

inline std::uint16_t code_of(double ticks) {
  if (ticks < 1) return 0;
  const double steps = std::log2(ticks) * kStepsEach + 1.5;
  return static_cast<std::uint16_t>(steps < 32767 ? steps : 32767);
}
inline double ticks_of(std::uint16_t code) { return code == 0 ? 0 : std::exp2((code - 1) / kStepsEach); }

// One stream of times on the side that writes.
class TimeWriter {
 public:
  // What is expected of a term.
  struct Expected {
    std::uint16_t code = 0;
    bool known = false;
    float ticks = 0;
  };

  // Whether a time is left out. If not, `code` is what is kept of it.
  bool leave_out(double ticks, double bound, Expected& expected, std::uint16_t* code) {
    recent_ += ticks - recent_ / kRecent;
    const double late = behind_ + ticks - expected.ticks;  // if it is left out
    if (expected.known) {
      const double off = ticks > expected.ticks ? ticks - expected.ticks : expected.ticks - ticks;
      const bool near = off <= kNear * expected.ticks || (ticks < kShort && expected.ticks < kShort);
      if (near && (late < 0 ? -late : late) <= bound * recent_) {
        behind_ = late;
        return true;
      }
    }
    // It takes as much of what was left out as it may be off.
    *code = code_of(std::clamp(ticks + behind_, ticks * (1 - kNear), ticks * (1 + kNear)));
    const double kept = ticks_of(*code);
    behind_ += ticks - kept;
    expected = {*code, true, static_cast<float>(kept)};
    return false;
  }

 private:
  double recent_ = 0;
  double behind_ = 0;  // what has passed beyond what is kept
};

}  // namespace stretto::record
