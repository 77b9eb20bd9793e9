// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_OVERLAP=on and auto: whether calls of one kind are worth it. All members get the same
// answer.
//
// A kind is a collective and, where all ranks know it, a length. Some of its first calls go without
// overlap, as many with it. What counts is the time from one call of the kind to the next, because
// that holds the call, the computation and whatever waits for data. The ranks compare their sums,
// and the longest counts. They try again, with more calls: after 16 where overlap was worth it,
// after 100 where not. From then on they do so after 250 calls, 500 and so on: a program may do
// something else by then.
//
//   call   0 1 2 3   4 5     6       7      8
//   on     with      without                compare: overlap stays unless it loses
//   auto   without   with    look    with   compare: overlap stays if it gains 3 percent
//
// Before a way ends, all data of its calls come, and that time counts for this way. Otherwise calls
// without overlap would wait for data of those with it, which use the same links.
//
// At the look the ranks compare what they have of calls with overlap: a great loss ends the trial.
//
// Four calls each way, and 24 from the second time on: programs compute differently after one call
// and the next, such as a transform forth and back, or one layer and another. 24 calls are whole
// turns of 2, 3, 4, 6, 8 and 12. Call i without is compared with call i with. The pair that differs
// most, later the six, is left out if it differs more than twice as much as most do: something
// else may have disturbed it, or the first call with overlap took memory and opened connections.
// What a thread waited for data is no disturbance: a program may wait once for the data of many
// calls.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

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
  static constexpr std::uint32_t kCalls = 4, kLaterCalls = 24;        // of each way
  static constexpr std::uint64_t kGreatLoss = 10;                     // percent
  static constexpr std::uint32_t kFirstAgain = 16, kLostAgain = 100;  // after so many calls
  static constexpr std::uint32_t kAgain = 250, kLastAgain = 2000;     // later

  Trial() = default;
  Trial(Collective as, std::uint64_t bytes, const TrialRule& rule) : as_(as), bytes_(bytes), rule_(rule) {}
  [[nodiscard]] bool is(Collective as, std::uint64_t bytes) const { return as == as_ && bytes == bytes_; }

  // A way ends with the next call: all data are to be there before it begins.
  [[nodiscard]] bool ends_way() const { return calls_ == each_ || calls_ == 2 * each_ || is_to_restart(); }
  // Whether the time until the next call counts.
  [[nodiscard]] bool measures() const { return calls_ <= 2 * each_ || is_to_restart(); }
  // A call begins. compare: the members are to tell each other times(), and then decide().
  // `waited_ns`: so long threads have waited for data of calls with overlap, ever; any number if
  // nothing is measured.
  Next begins(std::uint64_t now_ns, std::uint64_t waited_ns) {
    if (is_to_restart()) restart();
    const std::uint32_t call = calls_++;
    if (call > 0 && call <= 2 * each_)
      spans_[call - 1] = {static_cast<float>(now_ns - began_ns_), static_cast<float>(waited_ns - data_ns_)};
    began_ns_ = now_ns;
    data_ns_ = waited_ns;
    if (!is_lost_ && (call == 2 * each_ || is_look(call))) return Next::compare;
    return goes_with(call) ? Next::with : Next::without;
  }
  // So long the next call, with which a way ends, had to wait for them.
  void has_waited(std::uint64_t ns) {
    leaves_out(ns);
    ends_ns_[calls_ == each_ ? 0 : 1] = ns;
  }
  // What this call takes once, whichever way it goes: it counts for neither.
  void leaves_out(std::uint64_t ns) { began_ns_ += ns; }

  [[nodiscard]] TrialTimes times() const {
    const std::uint32_t count = std::min(calls_ - 1, 2 * each_) - each_;
    const float most_ns = 2 * median_apart_ns(count);
    bool left_out[kLaterCalls] = {};
    for (std::uint32_t n = 0; n < each_ / 4; ++n) {
      const std::uint32_t pair = worst(count, left_out);
      left_out[pair] = apart_ns(pair) > most_ns;
    }
    const int without = rule_.with_first ? 1 : 0, with = 1 - without;
    double sums[2] = {};  // by way, as the spans
    for (std::uint32_t i = 0; i < count; ++i) {
      if (left_out[i]) continue;
      sums[0] += first(i).ns;
      sums[1] += second(i).ns;
    }
    return {static_cast<std::uint64_t>(sums[without]) + ends_ns_[without],
            static_cast<std::uint64_t>(sums[with]) + ends_ns_[with]};
  }
  // Whether this call goes with overlap. After the last comparison: and those after it.
  bool decide(const TrialTimes& longest) {
    if (calls_ <= 2 * each_) {
      is_lost_ = longest.with_ns * 100 > longest.without_ns * (100 + kGreatLoss);
      return !is_lost_;
    }
    keeps_ = longest.with_ns * 100 < longest.without_ns * (100 - rule_.least_gain);
    return keeps_;
  }
  [[nodiscard]] bool is_decided() const { return calls_ > 2 * each_ || is_lost_; }

 private:
  // From one call to the next.
  struct Span {
    float ns, waited_ns;
    [[nodiscard]] float without_waits() const { return ns - std::min(ns, waited_ns); }
  };

  [[nodiscard]] bool is_to_restart() const { return calls_ == (is_first() && !keeps_ ? kLostAgain : again_after_); }
  void restart() {
    const std::uint32_t next = is_first() ? kAgain : std::min(2 * again_after_, kLastAgain);
    *this = Trial(as_, bytes_, rule_);
    each_ = kLaterCalls;
    again_after_ = next;
  }
  [[nodiscard]] bool is_first() const { return each_ == kCalls; }
  [[nodiscard]] const Span& first(std::uint32_t pair) const { return spans_[pair]; }
  [[nodiscard]] const Span& second(std::uint32_t pair) const { return spans_[each_ + pair]; }
  // How much a pair differs, but for waits.
  [[nodiscard]] float apart_ns(std::uint32_t pair) const {
    return std::abs(first(pair).without_waits() - second(pair).without_waits());
  }
  [[nodiscard]] float median_apart_ns(std::uint32_t count) const {
    float all[kLaterCalls];
    for (std::uint32_t i = 0; i < count; ++i) all[i] = apart_ns(i);
    std::sort(all, all + count);
    return count == 0 ? 0 : all[(count - 1) / 2];
  }
  // The pair of the first `count` that differs most, among those that are not left out.
  [[nodiscard]] std::uint32_t worst(std::uint32_t count, const bool* left_out) const {
    std::uint32_t found = 0;
    float most = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!left_out[i] && apart_ns(i) >= most) most = apart_ns(i), found = i;
    }
    return found;
  }
  [[nodiscard]] bool is_look(std::uint32_t call) const { return !rule_.with_first && call == each_ + each_ / 2; }
  [[nodiscard]] bool goes_with(std::uint32_t call) const {
    if (call > 2 * each_) return keeps_;
    return !is_lost_ && (call < each_) == rule_.with_first;
  }

  Collective as_{};
  std::uint64_t bytes_ = 0, began_ns_ = 0, data_ns_ = 0;
  TrialRule rule_;
  Span spans_[2 * kLaterCalls] = {};  // by way, the first one first
  std::uint64_t ends_ns_[2] = {};     // of a way, for the data that were still to come
  std::uint32_t calls_ = 0, each_ = kCalls, again_after_ = kFirstAgain;
  bool keeps_ = false, is_lost_ = false;
};

// The kinds of one communicator. All members see the same calls, and so have the same kinds in the
// same places.
class Trials {
 public:
  // A rank that measures nothing would go other ways than its peers. So it ends where there is no
  // memory for a few kilobytes.
  Trial& find(Collective as, std::uint64_t bytes, const TrialRule& rule) {
    if (kinds_.empty() && !kinds_.resize(kMost, Trial())) std::abort();
    for (Trial& trial : kinds_) {
      if (trial.is(as, bytes)) return trial;
    }
    return kinds_[next_++ % kMost] = Trial(as, bytes, rule);
  }

 private:
  static constexpr std::size_t kMost = 16;
  Array<Trial> kinds_;
  std::size_t next_ = 0;
};

}  // namespace stretto::mpi
