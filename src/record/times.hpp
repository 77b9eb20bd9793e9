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
#include <bit>
#include <cstdint>

#include "record/format.hpp"

namespace stretto::record {

inline constexpr double kRecent = 512;
// A single time that is left out is so near to what is expected, as a part of it.
inline constexpr double kNear = 0.3;
// And times so short are near each other, in ticks of the counter.
inline constexpr double kShort = 256;

// The scale by tables: a call has no time for logarithms.
struct Scale {
  static constexpr int kSteps = static_cast<int>(kStepsEach);
  static constexpr double kStep = 1.0108892860517005, kHalfStep = 1.0054299011128027;  // 2^(1/64), 2^(1/128)
  double at[kSteps];                                                                   // 2^(i/64)
  std::uint8_t nearest[kSteps];  // to 1 + i/64: a number in `at`, or kSteps for 2

  constexpr Scale() : at{}, nearest{} {
    double power = 1;
    for (double& each : at) {
      each = power;
      power *= kStep;
    }
    for (int i = 0, step = 0; i < kSteps; ++i) {
      while (step < kSteps && at[step] * kHalfStep <= 1 + i / kStepsEach) ++step;
      nearest[i] = static_cast<std::uint8_t>(step);
    }
  }
};
inline constexpr Scale kScale;

// Of less than 2^64 ticks.
static_assert(Scale::kSteps == 64);
inline std::uint16_t code_of(double ticks) {
  if (ticks < 1) return 0;
  constexpr std::uint64_t kOne = std::uint64_t{1023} << 52;
  const auto bits = std::bit_cast<std::uint64_t>(ticks);
  const auto mantissa = std::bit_cast<double>((bits & ((std::uint64_t{1} << 52) - 1)) | kOne);
  int step = kScale.nearest[bits >> 46 & 63];
  while (step < Scale::kSteps && mantissa >= kScale.at[step] * Scale::kHalfStep) ++step;
  return static_cast<std::uint16_t>(((bits - kOne) >> 52) * Scale::kSteps + static_cast<unsigned>(step) + 1);
}
inline double ticks_of(std::uint16_t code) {
  if (code == 0) return 0;
  const unsigned steps = code - 1u;
  const auto octave = std::bit_cast<double>(std::uint64_t{steps / Scale::kSteps + 1023} << 52);
  return octave * kScale.at[steps % Scale::kSteps];
}

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
