// SPDX-License-Identifier: BSD-3-Clause
// An inclusive scan over the members from `first` on, by doubling distances (see
// scan/doubling.cpp).
#pragma once
#include <bit>

#include "coll/algorithm.hpp"
#include "coll/phase/turns.hpp"

namespace stretto::coll {

inline void scan_by_doubling(Builder& b, const Group& group, int first, Slice in, Slice out) {
  const auto place = static_cast<unsigned>(group.me - first);
  Turns turns(b, in, out, std::bit_width(place));
  for (int distance = 1; distance < group.size - first; distance *= 2) {
    if (group.me + distance < group.size) b.send(group.rank(group.me + distance), turns.sum());
    if (group.me - distance >= first) turns.combine(group.rank(group.me - distance), sched::Side::left);
  }
}

}  // namespace stretto::coll
