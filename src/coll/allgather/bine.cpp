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
#include "coll/phase/folded.hpp"

namespace stretto::coll {

void allgather_bine(Builder& b, const Call& call) {
  const Group& group = call.group;
  allgather_folded(b, call, [&](const Fold& fold) {
    const int number = fold.number(group.me);
    const BineRanges ranges(fold, number);
    for (int round = 0; round < fold.rounds(); ++round) {
      const int peer = group.rank(fold.member(ranges.partner(round)));
      ranges.each_piece(call.outs, number, round, [&](Slice piece) { b.send(peer, piece); });
      ranges.each_piece(call.outs, ranges.partner(round), round, [&](Slice piece) { b.recv(peer, piece); });
    }
  });
}

}  // namespace stretto::coll
