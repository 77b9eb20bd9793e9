// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive doubling. In round j, members whose core numbers differ in bit j exchange
// their sums. All members combine the same pairs in the same order, so all have the same bits.
//
// Cost, for m units: floor(log2 P) exchanges of m units (+ 2 messages where P is no power of two),
// m units combined in each. Wins for short vectors. Order is kept.
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/turns.hpp"
#include "coll/shape/fold.hpp"

namespace stretto::coll {

void allreduce_recursive_doubling(Builder& b, const Call& call) {
  const Group& group = call.group;
  const Fold fold(group.size);
  const int partner = group.rank(fold.partner(group.me));
  if (fold.outside(group.me)) {
    b.send(partner, call.in);
    b.recv(partner, call.out);
    return;
  }
  const bool paired = fold.paired(group.me);
  Turns turns(b, call.in, call.out, fold.rounds() + (paired ? 1 : 0));
  if (paired) turns.combine(partner, sched::Side::left);
  const int number = fold.number(group.me);
  for (int round = 0; round < fold.rounds(); ++round) {
    const int other = number ^ 1 << round;
    const int peer = group.rank(fold.member(other));
    b.send(peer, turns.sum());
    turns.combine(peer, other < number ? sched::Side::left : sched::Side::right);
  }
  if (paired) b.send(partner, call.out);
}

}  // namespace stretto::coll
