// SPDX-License-Identifier: BSD-3-Clause
// Allgather along a Bine butterfly. In round j, partners at distance 1, 1, 3, 5, 11, ... exchange
// all parts that they have: those of neighbours in the ring of members.
//
// Cost: that of recursive doubling; a message is cut in two where its parts lie on both ends of the
// buffer. The longest distance is a third of all members, not a half.
//
// De Sensi et al. 2025 (arXiv 2508.17311).
#include "coll/algorithms.hpp"
#include "coll/phase/bine_ranges.hpp"

namespace stretto::coll {

void allgather_bine(Builder& b, const Call& call) {
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
  const BineRanges ranges(fold, fold.number(group.me));
  for (int round = 0; round < fold.rounds(); ++round) {
    const int peer = group.rank(fold.member(ranges.partner(round)));
    ranges.each_piece(call.outs, fold.number(group.me), round, [&](Slice piece) { b.send(peer, piece); });
    ranges.each_piece(call.outs, ranges.partner(round), round, [&](Slice piece) { b.recv(peer, piece); });
  }
  if (fold.paired(group.me)) b.send(partner, call.outs.all());
}

}  // namespace stretto::coll
