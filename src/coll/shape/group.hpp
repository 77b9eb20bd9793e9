// SPDX-License-Identifier: BSD-3-Clause
// The members of a group, numbered from 0, and the ranks behind them.
#pragma once

namespace stretto::coll {

struct Group {
  int size = 1;
  int me = 0;                  // this rank's number in the group
  const int* ranks = nullptr;  // of the members, in any order; null: member i is rank i
  int shift = 0;               // where the rank of member 0 stands

  [[nodiscard]] int rank(int member) const {
    const int at = member + shift < size ? member + shift : member + shift - size;
    return ranks ? ranks[at] : at;
  }
  // The member `distance` further on in the ring of members; -size < distance < size.
  [[nodiscard]] int around(int member, int distance) const {
    const int m = member + distance;
    return m < 0 ? m + size : m >= size ? m - size : m;
  }
  // The same ring, counted from another member on. For algorithms that want their root at a given
  // number.
  [[nodiscard]] Group counted_from(int member) const {
    return {size, around(me, -member), ranks, (shift + member) % size};
  }
};

}  // namespace stretto::coll
