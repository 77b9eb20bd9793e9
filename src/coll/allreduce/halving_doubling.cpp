// SPDX-License-Identifier: BSD-3-Clause
// Allreduce as a reduce-scatter by recursive halving and an allgather by recursive doubling.
//
// Cost, for m units: 2 floor(log2 P) exchanges (+ 2 messages of m units where P is no power of
// two). Each member sends 2 m (P - 1) / P units and combines m (P - 1) / P. Wins for long vectors
// on few hops. Order is kept.
//
// Rabenseifner 2004; Thakur, Rabenseifner, Gropp 2005.
#include "coll/algorithms.hpp"
#include "coll/phase/folded.hpp"
#include "coll/phase/halving.hpp"

namespace stretto::coll {

void halve_and_double(Builder& b, const Call& call, Halving::Partners partners) {
  const Fold fold(call.group.size);
  folded(b, call.group, fold, call.in, call.out, [&](int partner) {
    Slice in = call.in;
    if (partner >= 0) {
      b.recv_reduce(partner, in, call.out, sched::Side::left);
      in = call.out;
    }
    Halving halving(b, call.group, fold, partners);
    halving.reduce_scatter(in, call.out);
    halving.allgather(call.out);
    if (partner >= 0) b.send(partner, call.out);
  });
}

void allreduce_halving_doubling(Builder& b, const Call& call) { halve_and_double(b, call, Halving::Partners::bits); }

}  // namespace stretto::coll
