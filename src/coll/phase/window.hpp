// SPDX-License-Identifier: BSD-3-Clause
// Limits the exchanges in flight. Of a number of them, the n-th starts when the (n - window)-th is
// complete. Of a number of units, it starts when so many earlier ones are complete that the others
// hold no more than that together with it. One other may be in flight in any case.
#pragma once
#include "sched/builder.hpp"

namespace stretto::coll {

class Window {
 public:
  Window(sched::Builder& builder, int window)
      : builder_(builder), window_(window < 0 ? 0 : static_cast<std::size_t>(window)) {}

  static Window of_units(sched::Builder& builder, std::uint64_t most) {
    Window window(builder, 0);
    window.most_units_ = most;
    return window;
  }

  // One exchange of up to two messages. Each function emits one of them. `units`: of the longer
  // one.
  template <class One, class Other>
  void admit(One one, Other other, std::uint64_t units = 0) {
    const std::size_t first = complete_;
    const std::uint64_t before = units_;
    units_ += units;
    while (is_full()) units_ -= admitted_[complete_++].units;
    Admitted now{sched::kNoStep, sched::kNoStep, units};
    follow(first);
    now.one = one();
    follow(first);
    now.other = other();
    if (now.one != sched::kNoStep || now.other != sched::kNoStep) {
      admitted_.push(now);
    } else {
      complete_ = first;
      units_ = before;
    }
  }
  template <class One>
  void admit(One one) {
    admit(one, [] { return sched::kNoStep; });
  }

 private:
  struct Admitted {
    sched::StepId one, other;
    std::uint64_t units;
  };
  [[nodiscard]] bool is_full() const {
    const std::size_t in_flight = admitted_.size() - complete_;
    return (window_ != 0 && in_flight >= window_) || (most_units_ != 0 && in_flight >= 2 && units_ > most_units_);
  }
  // The next step follows the exchanges that have become complete since `first`.
  void follow(std::size_t first) {
    for (std::size_t i = first; i < complete_; ++i) {
      builder_.after(admitted_[i].one);
      builder_.after(admitted_[i].other);
    }
  }

  sched::Builder& builder_;
  std::size_t window_;
  std::uint64_t most_units_ = 0;  // 0: any number
  std::uint64_t units_ = 0;       // of the exchanges in flight
  std::size_t complete_ = 0;      // so many of the first exchanges are complete
  Array<Admitted> admitted_;
};

}  // namespace stretto::coll
