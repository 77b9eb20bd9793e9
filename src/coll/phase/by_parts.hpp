// SPDX-License-Identifier: BSD-3-Clause
// Allreduce in two phases: each member sums up one part of the vector, then all gather the sums.
#pragma once
#include "coll/algorithm.hpp"

namespace stretto::coll {

template <class Scatter, class Gather>
void allreduce_by_parts(Builder& b, const Call& call, Scatter scatter, Gather gather) {
  Call inner = call;
  inner.ins = Parts::deal(call.in, call.group.size);
  inner.outs = Parts::deal(call.out, call.group.size);
  inner.out = inner.outs.at(call.group.me);
  scatter(b, inner);
  inner.in = inner.out;
  gather(b, inner);
}

}  // namespace stretto::coll
