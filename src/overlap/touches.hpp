// SPDX-License-Identifier: BSD-3-Clause
// What the program's threads wait for, and when they did. For one thread, the driver's.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>

namespace stretto::overlap {

// A time from `begin_ns` on.
struct Span {
  std::uint64_t begin_ns = 0, ns = 0;
};

// Threads that have touched pages of one call that are away.
class Touches {
 public:
  static constexpr std::size_t kSpans = 16;
  struct Touch {
    std::uint64_t at = 0, since_ns = 0;  // the page
  };

  // A thread waits for this page. True: it is the first one that waits.
  bool begin(std::uint64_t at, std::uint64_t now_ns) {
    const bool is_known = std::any_of(touches_, touches_ + count_, [&](const Touch& touch) { return touch.at == at; });
    if (is_known || count_ == kMost) return false;
    if (count_ == 0) since_ns_ = now_ns;
    touches_[count_++] = {at, now_ns};
    return count_ == 1;
  }
  // `is_home(page)` for those that nobody waits for any more. False: there were none.
  template <class IsHome>
  bool end(const IsHome& is_home, std::uint64_t now_ns) {
    Touch* const last =
        std::remove_if(touches_, touches_ + count_, [&](const Touch& touch) { return is_home(touch.at); });
    const auto left = static_cast<std::size_t>(last - touches_);
    if (left == count_) return false;
    count_ = left;
    if (count_ == 0) close(now_ns);
    return true;
  }
  void end_all(std::uint64_t now_ns) {
    if (count_ != 0) close(now_ns);
    count_ = 0;
  }
  // Null: no thread waits.
  [[nodiscard]] const Touch* oldest() const { return count_ != 0 ? touches_ : nullptr; }

  // When at least one thread waited. The last span also has what had no place.
  [[nodiscard]] std::size_t spans() const { return span_count_; }
  [[nodiscard]] const Span& span(std::size_t i) const { return spans_[i]; }
  // Of all of them.
  [[nodiscard]] std::uint64_t ns() const {
    return std::accumulate(spans_, spans_ + span_count_, std::uint64_t{0},
                           [](std::uint64_t sum, const Span& span) { return sum + span.ns; });
  }

 private:
  static constexpr std::size_t kMost = 16;  // threads at a time; further ones are not seen
  void close(std::uint64_t now_ns) {
    if (span_count_ < kSpans)
      spans_[span_count_++] = {since_ns_, now_ns - since_ns_};
    else
      spans_[kSpans - 1].ns += now_ns - since_ns_;
  }

  Touch touches_[kMost];
  std::size_t count_ = 0, span_count_ = 0;
  std::uint64_t since_ns_ = 0;
  Span spans_[kSpans];
};

}  // namespace stretto::overlap
