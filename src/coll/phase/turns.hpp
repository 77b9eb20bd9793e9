// SPDX-License-Identifier: BSD-3-Clause
// Combines what partners send while the sum so far is on its way to them. The new sum goes to the
// other one of two places, so no receive waits for a send. The last sum is in the output.
#pragma once
#include "sched/builder.hpp"

namespace stretto::coll {

class Turns {
 public:
  // `sums` sums follow. The input is the first operand. It stays as it is, unless it lies in the
  // output.
  Turns(sched::Builder& builder, sched::Slice in, sched::Slice out, int sums) : builder_(builder), sum_(in), out_(out) {
    if (sums == 0) builder_.copy(in, out);
    if (sums >= 2 || (sums == 1 && in == out)) spare_ = builder_.scratch(out.length);
    next_is_out_ = sums % 2 == 1;
    if (in == out && next_is_out_) {
      builder_.copy(in, spare_);
      sum_ = spare_;
    }
  }

  [[nodiscard]] sched::Slice sum() const { return sum_; }
  // Where the next sum goes. It is the sum from now on.
  sched::Slice turn() {
    sum_ = next_is_out_ ? out_ : spare_;
    next_is_out_ = !next_is_out_;
    return sum_;
  }
  void combine(int peer, sched::Side arriving) {
    const sched::Slice before = sum_;
    builder_.recv_reduce(peer, before, turn(), arriving);
  }

 private:
  sched::Builder& builder_;
  sched::Slice sum_;
  sched::Slice out_;
  sched::Slice spare_;
  bool next_is_out_;
};

}  // namespace stretto::coll
