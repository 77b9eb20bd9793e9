// SPDX-License-Identifier: BSD-3-Clause
// Barrier by exchanges of signals between members whose core numbers differ in one bit, bit by bit.
//
// Cost: floor(log2 P) exchanges, and two signals more where P is no power of two. Wins where an
// exchange costs no more than a message.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"

namespace stretto::coll {

void barrier_recursive_doubling(Builder& b, const Call& call) {
  const Group& group = call.group;
  const Fold fold(group.size);
  const auto give = [&](int partner) { b.signal(partner); };
  const auto take = [&](int partner) { b.await(partner); };
  folded(group, fold, give, take, [&](int partner) {
    sched::StepId last = partner >= 0 ? b.await(partner) : sched::kNoStep;
    for (int round = 0; round < fold.rounds(); ++round) {
      const int peer = group.rank(fold.member(fold.number(group.me) ^ 1 << round));
      b.after(last);
      b.signal(peer);
      b.after(last);
      last = b.await(peer);
    }
    if (partner < 0) return;
    b.after(last);
    b.signal(partner);
  });
}

}  // namespace stretto::coll
