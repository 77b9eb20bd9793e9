// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter by direct messages. Every member sends each other member its part and combines
// what it receives, in the order of distance. Where order counts, it takes its neighbours on both
// sides in turn, and the sum grows outwards.
//
// Cost: P - 1 messages of one part each, everything sent once. Wins for long vectors where distance
// costs nothing, and for operations that do not commute.
//
// MPICH's pairwise exchange; Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"

namespace stretto::coll {
namespace {

class Sum {
 public:
  Sum(Builder& b, const Call& call) : b_(b), call_(call), sum_(call.ins.at(call.group.me)) {}
  void exchange(int to, int from, sched::Side side) {
    if (to >= 0) b_.send(call_.group.rank(to), call_.ins.at(to));
    if (from < 0) return;
    b_.recv_reduce(call_.group.rank(from), sum_, call_.out, side);
    sum_ = call_.out;
  }

 private:
  Builder& b_;
  const Call& call_;
  Slice sum_;
};

}  // namespace

void reduce_scatter_pairwise(Builder& b, const Call& call) {
  const Group& group = call.group;
  if (group.size == 1) b.copy(call.ins.at(0), call.out);
  Sum sum(b, call);
  for (int distance = 1; distance < group.size; ++distance) {
    if (call.commutative) {
      sum.exchange(group.around(group.me, distance), group.around(group.me, -distance), sched::Side::left);
      continue;
    }
    const int below = group.me - distance < 0 ? -1 : group.me - distance;
    const int above = group.me + distance < group.size ? group.me + distance : -1;
    sum.exchange(above, below, sched::Side::left);
    sum.exchange(below, above, sched::Side::right);
  }
}

}  // namespace stretto::coll
