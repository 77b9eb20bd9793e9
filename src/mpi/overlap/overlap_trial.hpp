// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_OVERLAP=auto: whether calls of one kind are worth it. All members get the same answer.
//
// A kind is a collective and, where all ranks know it, a length. Its first calls go without, the
// next ones with overlap. What counts is the time from one call of the kind to the next, because
// that holds the call, the computation and whatever waits for data. The members then compare the
// medians: the longest of all ranks, with and without. The kind keeps overlap if that gains
// `kGain` percent. After many calls it tries again.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/array.hpp"
#include "base/collective.hpp"

namespace stretto::mpi {

struct TrialMedians {
  std::uint64_t without_ns = 0, with_ns = 0;
};

class Trial {
 public:
  enum class Next : std::uint8_t { without, with, compare };
  static constexpr std::uint32_t kCalls = 5;  // of each way
  static constexpr std::uint64_t kGain = 3;   // percent
  static constexpr std::uint32_t kAgainAfter = 2000;

  Trial() = default;
  Trial(Collective as, std::uint64_t bytes) : as_(as), bytes_(bytes) {}
  [[nodiscard]] bool is(Collective as, std::uint64_t bytes) const { return as == as_ && bytes == bytes_; }

  // A call begins. compare: the members are to tell each other medians(), and then decide().
  Next begins(std::uint64_t now_ns) {
    if (calls_ == kAgainAfter) calls_ = 0;
    if (calls_ > 0 && calls_ <= 2 * kCalls) spans_[calls_ - 1] = now_ns - began_ns_;
    began_ns_ = now_ns;
    const std::uint32_t call = calls_++;
    if (call == 2 * kCalls) return Next::compare;
    return (call < 2 * kCalls ? call >= kCalls : keeps_) ? Next::with : Next::without;
  }
  [[nodiscard]] TrialMedians medians() const { return {median(spans_), median(spans_ + kCalls)}; }
  bool decide(const TrialMedians& longest) {
    keeps_ = longest.with_ns * 100 < longest.without_ns * (100 - kGain);
    return keeps_;
  }

 private:
  static std::uint64_t median(const std::uint64_t* spans) {
    std::uint64_t sorted[kCalls];
    std::copy_n(spans, kCalls, sorted);
    std::sort(sorted, sorted + kCalls);
    return sorted[kCalls / 2];
  }

  Collective as_{};
  std::uint64_t bytes_ = 0, began_ns_ = 0;
  std::uint64_t spans_[2 * kCalls] = {};
  std::uint32_t calls_ = 0;
  bool keeps_ = false;
};

// The kinds of one communicator. All members see the same calls, and so have the same kinds in the
// same places.
class Trials {
 public:
  Trial* find(Collective as, std::uint64_t bytes) {
    for (Trial& trial : trials_) {
      if (trial.is(as, bytes)) return &trial;
    }
    Trial& made = trials_[next_++ % kMost];
    made = Trial(as, bytes);
    return &made;
  }

 private:
  static constexpr std::size_t kMost = 16;
  Trial trials_[kMost] = {};
  std::size_t next_ = 0;
};

}  // namespace stretto::mpi
