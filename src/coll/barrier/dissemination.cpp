// SPDX-License-Identifier: BSD-3-Clause
// Barrier by dissemination. In every round a member signals to k - 1 others, at multiples of a
// distance that grows k-fold, and waits for as many.
//
// Cost: ceil(log_k P) rounds of k - 1 signals. Wins almost everywhere. Larger k wins where signals
// overlap well.
//
// Hensgen, Finkel, Manber 1988; n-way: Hoefler, Mehlan, Mietke, Rehm 2006.
#include "coll/algorithms.hpp"

namespace stretto::coll {

void barrier_dissemination(Builder& b, const Call& call) {
  const Group& group = call.group;
  const long k = call.parameters.k < 2 ? 2 : call.parameters.k;
  // In all rounds so far. Only the last round matters: its steps waited for those before.
  Array<sched::StepId> heard;
  std::size_t known = 0;
  for (long unit = 1; unit < group.size; unit *= k) {
    const std::size_t before = known;
    known = heard.size();
    const auto after_last_round = [&] {
      for (std::size_t i = before; i < known; ++i) b.after(heard[i]);
    };
    for (long distance = unit; distance < unit * k && distance < group.size; distance += unit) {
      after_last_round();
      b.signal(group.rank(group.around(group.me, static_cast<int>(distance))));
    }
    for (long distance = unit; distance < unit * k && distance < group.size; distance += unit) {
      after_last_round();
      heard.push(b.await(group.rank(group.around(group.me, static_cast<int>(-distance)))));
    }
  }
  if (heard.failed()) b.fail();
}

}  // namespace stretto::coll
