// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_OVERLAP=on and auto: whether calls of one kind are worth it. All members get the same
// answer.
//
// A kind is a collective and, where all ranks know it, a length. Some of its first calls go without
// overlap, as many with it. What counts is the time from one call of the kind to the next, because
// that holds the call, the computation and whatever waits for data. The ranks compare their sums,
// and the longest counts. Something else may have disturbed that, so they try again: after 250 calls
// where overlap was not worth it, after 40 where it was, then after 80, and so on.
//
//   call   0 1 2 3   4 5     6       7      8
//   on     with      without                compare: overlap stays unless it loses
//   auto   without   with    look    with   compare: overlap stays if it gains 3 percent
//
// At the look the ranks compare the two calls with overlap so far: a great loss ends the trial.
//
// Four calls each way: programs compute differently after one call and the next, such as a
// transform forth and back, mostly by turns of two or four. Call i without is compared with call i
// with. The pair that differs most is left out: something else may have disturbed it, or the first
// call with overlap took memory and opened connections.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/array.hpp"
#include "base/collective.hpp"

namespace stretto::mpi {

struct TrialTimes {
  std::uint64_t without_ns = 0, with_ns = 0;
};

struct TrialRule {
  bool with_first = false;
  std::uint64_t least_gain = 3;  // percent
};
inline constexpr TrialRule kTrialOfOn{true, 0}, kTrialOfAuto{false, 3};

class Trial {
 public:
  enum class Next : std::uint8_t { without, with, compare };
  static constexpr std::uint32_t kCalls = 4;                                 // of each way
  static constexpr std::uint64_t kGreatLoss = 10;                            // percent
  static constexpr std::uint32_t kAgainAfter = 250;                          // calls without
  static constexpr std::uint32_t kFirstAgain = 40, kLastAgain = 2000;        // calls with

  Trial() = default;
  Trial(Collective as, std::uint64_t bytes, const TrialRule& rule) : as_(as), bytes_(bytes), rule_(rule) {}
  [[nodiscard]] bool is(Collective as, std::uint64_t bytes) const { return as == as_ && bytes == bytes_; }

  // A call begins. compare: the members are to tell each other times(), and then decide().
  Next begins(std::uint64_t now_ns) {
    if (calls_ == (keeps_ ? again_after_ : kAgainAfter)) restart();
    const std::uint32_t call = calls_++;
    if (call > 0 && call <= 2 * kCalls) spans_[call - 1] = now_ns - began_ns_;
    began_ns_ = now_ns;
    if (!is_lost_ && (call == 2 * kCalls || is_look(call))) return Next::compare;
    return goes_with(call) ? Next::with : Next::without;
  }
  // What this call takes once, whichever way it goes: it counts for neither.
  void leaves_out(std::uint64_t ns) { began_ns_ += ns; }

  [[nodiscard]] TrialTimes times() const {
    TrialTimes sum;
    std::uint64_t most = 0;
    std::uint32_t disturbed = kCalls;
    const std::uint32_t pairs = std::min(calls_ - 1, 2 * kCalls) - kCalls;
    for (std::uint32_t i = 0; i < pairs && pairs > 1; ++i) {
      const std::uint64_t apart = std::max(first(i), second(i)) - std::min(first(i), second(i));
      if (apart > most) most = apart, disturbed = i;
    }
    for (std::uint32_t i = 0; i < pairs; ++i) {
      if (i == disturbed) continue;
      sum.without_ns += rule_.with_first ? second(i) : first(i);
      sum.with_ns += rule_.with_first ? first(i) : second(i);
    }
    return sum;
  }
  // Whether this call goes with overlap. After the last comparison: and those after it.
  bool decide(const TrialTimes& longest) {
    if (calls_ <= 2 * kCalls) {
      is_lost_ = longest.with_ns * 100 > longest.without_ns * (100 + kGreatLoss);
      return !is_lost_;
    }
    keeps_ = longest.with_ns * 100 < longest.without_ns * (100 - rule_.least_gain);
    return keeps_;
  }
  [[nodiscard]] bool is_decided() const { return calls_ > 2 * kCalls || is_lost_; }

 private:
  void restart() {
    const std::uint32_t next = keeps_ ? std::min(2 * again_after_, kLastAgain) : kFirstAgain;
    *this = Trial(as_, bytes_, rule_);
    again_after_ = next;
  }
  [[nodiscard]] std::uint64_t first(std::uint32_t pair) const { return spans_[pair]; }
  [[nodiscard]] std::uint64_t second(std::uint32_t pair) const { return spans_[kCalls + pair]; }
  [[nodiscard]] bool is_look(std::uint32_t call) const { return !rule_.with_first && call == kCalls + 2; }
  [[nodiscard]] bool goes_with(std::uint32_t call) const {
    if (call > 2 * kCalls) return keeps_;
    return !is_lost_ && (call < kCalls) == rule_.with_first;
  }

  Collective as_{};
  std::uint64_t bytes_ = 0, began_ns_ = 0;
  TrialRule rule_;
  std::uint64_t spans_[2 * kCalls] = {};
  std::uint32_t calls_ = 0, again_after_ = kFirstAgain;
  bool keeps_ = false, is_lost_ = false;
};

// The kinds of one communicator. All members see the same calls, and so have the same kinds in the
// same places.
class Trials {
 public:
  Trial* find(Collective as, std::uint64_t bytes, const TrialRule& rule) {
    for (Trial& trial : trials_) {
      if (trial.is(as, bytes)) return &trial;
    }
    Trial& made = trials_[next_++ % kMost];
    made = Trial(as, bytes, rule);
    return &made;
  }

 private:
  static constexpr std::size_t kMost = 16;
  Trial trials_[kMost] = {};
  std::size_t next_ = 0;
};

}  // namespace stretto::mpi
