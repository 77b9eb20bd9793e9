// SPDX-License-Identifier: BSD-3-Clause
// Allgather by recursive doubling. In round j, members whose core numbers differ in bit j exchange
// all parts that they have.
//
// Cost, for parts of m units: floor(log2 P) exchanges, (P - 1) m in all. Where P is no power of
// two, one more message of one part before them, and one of all parts after them. Wins for short
// parts of a power of two of members.
//
// Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"

namespace stretto::coll {

void allgather_recursive_doubling(Builder& b, const Call& call) {
  const Group& group = call.group;
  allgather_folded(b, call, [&](const Fold& fold) {
    const int number = fold.number(group.me);
    const auto parts = [&](int first, int count) {
      return call.outs.range(fold.first(first), fold.first(first + count));
    };
    for (int count = 1; count < fold.core; count *= 2) {
      const int mine = number & ~(count - 1);
      const int peer = group.rank(fold.member(number ^ count));
      b.send(peer, parts(mine, count));
      b.recv(peer, parts(mine ^ count, count));
    }
  });
}

}  // namespace stretto::coll
