// SPDX-License-Identifier: BSD-3-Clause
// Allgather and Reduce_scatter among the core members of a fold (shape/fold.hpp): what they do for
// the members outside, before and after their own rounds.
#pragma once
#include "coll/algorithm.hpp"
#include "coll/shape/fold.hpp"

namespace stretto::coll {

// `rounds(fold)` brings each core member the parts of all core members and of their partners.
template <class Rounds>
void allgather_folded(Builder& b, const Call& call, Rounds rounds) {
  const Group& group = call.group;
  const Fold fold(group.size);
  const int other = fold.partner(group.me);
  const int partner = group.rank(other);
  if (fold.outside(group.me)) {
    b.send(partner, call.in);
    b.recv(partner, call.outs.all());
    return;
  }
  b.copy(call.in, call.outs.at(group.me));
  if (fold.paired(group.me)) b.recv(partner, call.outs.at(other));
  rounds(fold);
  if (fold.paired(group.me)) b.send(partner, call.outs.all());
}

// `rounds(fold, work, summed)` sums up what core members have. Until `summed` that is the input,
// then it lies in `work`. The result goes to `work` on a member with a partner outside, to call.out
// on all others.
template <class Rounds>
void reduce_scatter_folded(Builder& b, const Call& call, Rounds rounds) {
  const Group& group = call.group;
  const Fold fold(group.size);
  const int partner = group.rank(fold.partner(group.me));
  if (fold.outside(group.me)) {
    b.send(partner, call.ins.all());
    b.recv(partner, call.out);
    return;
  }
  if (fold.core == 1) {
    b.copy(call.ins.all(), call.out);
    return;
  }
  const bool paired = fold.paired(group.me);
  const Parts work = call.ins.moved_to(b.scratch(call.ins.total()));
  if (paired) b.recv_reduce(partner, call.ins.all(), work.all(), sched::Side::left);
  rounds(fold, work, paired);
  if (paired) {
    b.send(partner, work.at(fold.partner(group.me)));
    b.copy(work.at(group.me), call.out);
  }
}

}  // namespace stretto::coll
