// SPDX-License-Identifier: BSD-3-Clause
// Algorithms among the core members of a fold (shape/fold.hpp), and what these do for the members
// outside, before and after their own rounds.
#pragma once
#include "coll/algorithm.hpp"
#include "coll/shape/fold.hpp"

namespace stretto::coll {

// A member outside does `give(partner)`, then `take(partner)`. All others do `rounds(partner)`,
// where `partner` is the rank of the member outside that this one works for; -1: there is none.
template <class Give, class Take, class Rounds>
void folded(const Group& group, const Fold& fold, Give give, Take take, Rounds rounds) {
  const int partner = fold.paired(group.me) ? group.rank(fold.partner(group.me)) : -1;
  if (!fold.outside(group.me)) return rounds(partner);
  give(partner);
  take(partner);
}

// The same for a member outside that gives its input and takes the result.
template <class Rounds>
void folded(Builder& b, const Group& group, const Fold& fold, Slice in, Slice out, Rounds rounds) {
  folded(group, fold, [&](int partner) { b.send(partner, in); }, [&](int partner) { b.recv(partner, out); }, rounds);
}

// `rounds(fold)` brings each core member the parts of all core members and of their partners.
template <class Rounds>
void allgather_folded(Builder& b, const Call& call, Rounds rounds) {
  const int me = call.group.me;
  const Fold fold(call.group.size);
  folded(b, call.group, fold, call.in, call.outs.all(), [&](int partner) {
    b.copy(call.in, call.outs.at(me));
    if (partner >= 0) b.recv(partner, call.outs.at(fold.partner(me)));
    rounds(fold);
    if (partner >= 0) b.send(partner, call.outs.all());
  });
}

// `rounds(fold, work, summed)` sums up what core members have. Until `summed` that is the input,
// then it lies in `work`. The result goes to `work` on a member with a partner outside, to call.out
// on all others.
template <class Rounds>
void reduce_scatter_folded(Builder& b, const Call& call, Rounds rounds) {
  const int me = call.group.me;
  const Fold fold(call.group.size);
  folded(b, call.group, fold, call.ins.all(), call.out, [&](int partner) {
    if (fold.core == 1) {
      b.copy(call.ins.all(), call.out);
      return;
    }
    const bool paired = partner >= 0;
    const Parts work = call.ins.moved_to(b.scratch(call.ins.total()));
    if (paired) b.recv_reduce(partner, call.ins.all(), work.all(), sched::Side::left);
    rounds(fold, work, paired);
    if (!paired) return;
    b.send(partner, work.at(fold.partner(me)));
    b.copy(work.at(me), call.out);
  });
}

}  // namespace stretto::coll
