// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter by recursive halving. Partners in opposite halves of the members give each other
// the sums for the other's half, until every member has one part left.
//
// Cost, for m units in all: floor(log2 P) exchanges (+ 2 messages where P is no power of two). Each
// member sends and combines m (P - 1) / P units. Wins for vectors of short and middle length. Far
// partners come first, so sums join members that are no neighbours, and operations must commute.
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"

namespace stretto::coll {

void reduce_scatter_recursive_halving(Builder& b, const Call& call) {
  const Group& group = call.group;
  reduce_scatter_folded(b, call, [&](const Fold& fold, const Parts& work, bool summed) {
    Parts sums = summed ? work : call.ins;
    const int number = fold.number(group.me);
    const auto parts = [&](const Parts& of, int first, int last) {
      return of.range(fold.first(first), fold.first(last));
    };
    int first = 0;
    for (int half = fold.core / 2; half > 0; half /= 2) {
      const bool upper = number >= first + half;
      const int keep = upper ? first + half : first;
      const int give = upper ? first : first + half;
      const int peer = group.rank(fold.member(upper ? number - half : number + half));
      b.send(peer, parts(sums, give, give + half));
      const bool last = half == 1 && !fold.paired(group.me);
      b.recv_reduce(peer, parts(sums, keep, keep + half), last ? call.out : parts(work, keep, keep + half),
                    upper ? sched::Side::left : sched::Side::right);
      sums = work;
      first = keep;
    }
  });
}

}  // namespace stretto::coll
