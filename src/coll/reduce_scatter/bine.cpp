// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter along a Bine butterfly, furthest partners first. Partners give each other the sums
// for the neighbours that the other keeps.
//
// Cost: that of recursive halving; a message is cut in two where its parts lie on both ends of the
// buffer. The longest distance is a third of all members, not a half. Operations must commute.
//
// De Sensi et al. 2025 (arXiv 2508.17311).
#include "coll/algorithms.hpp"
#include "coll/phase/bine_ranges.hpp"
#include "coll/phase/folded.hpp"

namespace stretto::coll {

void reduce_scatter_bine(Builder& b, const Call& call) {
  const Group& group = call.group;
  reduce_scatter_folded(b, call, [&](const Fold& fold, const Parts& work, bool summed) {
    const auto sum = [&](Slice of) {
      return summed ? of : Slice{call.ins.buffer, call.ins.offset + (of.offset - work.offset), of.length};
    };
    const int number = fold.number(group.me);
    const BineRanges ranges(fold, number);
    for (int round = fold.rounds() - 1; round >= 0; --round, summed = true) {
      const int peer = group.rank(fold.member(ranges.partner(round)));
      const bool last = round == 0 && !fold.paired(group.me);
      ranges.each_piece(work, ranges.partner(round), round, [&](Slice piece) { b.send(peer, sum(piece)); });
      ranges.each_piece(work, number, round, [&](Slice piece) {
        b.recv_reduce(peer, sum(piece), last ? call.out : piece, sched::Side::left);
      });
    }
  });
}

}  // namespace stretto::coll
