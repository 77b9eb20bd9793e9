// SPDX-License-Identifier: BSD-3-Clause
// Reduce as a reduce-scatter by recursive halving and a gather of the parts to the root along the
// same partners. Every core member combines, and no member but the root ever holds the whole
// result.
//
// Cost, for m units: 2 floor(log2 P) messages (+ 1 or 2 where P is no power of two). Each member
// sends about 2 m (P - 1) / P units and combines m (P - 1) / P (+ m for the fold). Wins for long
// vectors. Order is kept, any root.
//
// Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"
#include "coll/phase/halving.hpp"

namespace stretto::coll {

void reduce_scatter_gather(Builder& b, const Call& call) {
  const Fold fold(call.group.size);
  const int me = call.group.me;
  const bool is_root = me == call.root;
  const auto give = [&](int partner) { b.send(partner, call.in); };
  const auto take = [&](int partner) {
    if (is_root) b.recv(partner, call.out);
  };
  folded(call.group, fold, give, take, [&](int partner) {
    const Slice work = is_root ? call.out : b.scratch(call.in.length);
    Slice in = call.in;
    if (partner >= 0) {
      b.recv_reduce(partner, in, work, sched::Side::left);
      in = work;
    }
    Halving halving(b, call.group, fold);
    halving.reduce_scatter(in, work);
    halving.gather(work, fold.number(call.root));
    if (fold.outside(call.root) && fold.partner(call.root) == me) b.send(partner, work);
  });
}

}  // namespace stretto::coll
