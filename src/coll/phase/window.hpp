// SPDX-License-Identifier: BSD-3-Clause
// Limits the exchanges in flight: the n-th starts when the (n - window)-th is complete.
#pragma once
#include "sched/builder.hpp"

namespace stretto::coll {

class Window {
 public:
  Window(sched::Builder& builder, int window)
      : builder_(builder), window_(window < 0 ? 0 : static_cast<std::size_t>(window)) {}

  // One exchange of up to two messages. Each function emits one of them.
  template <class One, class Other>
  void admit(One one, Other other) {
    const bool full = window_ != 0 && admitted_.size() >= window_;
    const Pair before = full ? admitted_[admitted_.size() - window_] : Pair{sched::kNoStep, sched::kNoStep};
    Pair now;
    follow(before);
    now.one = one();
    follow(before);
    now.other = other();
    if (now.one != sched::kNoStep || now.other != sched::kNoStep) admitted_.push(now);
  }
  template <class One>
  void admit(One one) {
    admit(one, [] { return sched::kNoStep; });
  }

 private:
  struct Pair {
    sched::StepId one, other;
  };
  void follow(const Pair& before) {
    builder_.after(before.one);
    builder_.after(before.other);
  }

  sched::Builder& builder_;
  std::size_t window_;
  Array<Pair> admitted_;
};

}  // namespace stretto::coll
