// SPDX-License-Identifier: BSD-3-Clause
// Allreduce by recursive multiplying. In each round, members whose core numbers differ in one digit
// exchange their sums, all with all. Each combines the sums in the order of that digit, so all
// members have the same bits. With k = 2 it is recursive doubling, and has that name.
//
// Cost, for m units: about log_k P rounds of k - 1 messages of m units, which travel at one time.
// Each message costs one combination of m units. The fold adds 2 messages, unless P is a product of
// that many radices of at most k. Wins for short vectors where the way through the network takes
// longer than sending k messages. Order is kept.
//
// Ruefenacht, Bull, Booth 2017; recursive doubling: Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"
#include "coll/phase/turns.hpp"
#include "coll/shape/radices.hpp"

namespace stretto::coll {
namespace {

// to = the sums of all members of a group, combined in order. `own` is this member's sum; it stands
// at `digit`.
template <typename Peer>
void combine_in_order(Builder& b, Slice own, Slice to, int radix, int digit, Peer peer) {
  if (digit == 0)
    b.recv_reduce(peer(1), own, to, sched::Side::right);
  else if (digit == 1)
    b.recv_reduce(peer(0), own, to, sched::Side::left);
  else
    b.recv(peer(0), to);
  for (int other = digit < 2 ? 2 : 1; other < radix; ++other) {
    if (other == digit)
      b.reduce(own, to, sched::Side::right);
    else
      b.recv_reduce(peer(other), to, to, sched::Side::right);
  }
}

void multiply(Builder& b, const Call& call, int k) {
  const Group& group = call.group;
  const Radices radices(group.size, k);
  const Fold fold = radices.fold();
  folded(b, group, fold, call.in, call.out, [&](int partner) {
    const bool paired = partner >= 0;
    Turns turns(b, call.in, call.out, radices.rounds() + (paired ? 1 : 0));
    if (paired) turns.combine(partner, sched::Side::left);
    const int number = fold.number(group.me);
    for (int round = 0, stride = 1; round < radices.rounds(); stride *= radices[round++]) {
      const int radix = radices[round], digit = number / stride % radix;
      const auto peer = [&](int other) { return group.rank(fold.member(number + (other - digit) * stride)); };
      const Slice own = turns.sum();
      for (int step = 1; step < radix; ++step) b.send(peer((digit + step) % radix), own);
      combine_in_order(b, own, turns.turn(), radix, digit, peer);
    }
    if (paired) b.send(partner, call.out);
  });
}

}  // namespace

void allreduce_recursive_doubling(Builder& b, const Call& call) { multiply(b, call, 2); }
void allreduce_recursive_multiplying(Builder& b, const Call& call) { multiply(b, call, call.parameters.k); }

}  // namespace stretto::coll
