// SPDX-License-Identifier: BSD-3-Clause
// How any number of members runs an algorithm for a power of two of them. Below the excess, pairs of neighbours stand
// together: the odd one works for both and the even one waits outside. Those that take part, numbered in order, are the
// core; a core number still stands for neighbouring members, so the order of contributions is kept.
#pragma once
#include <bit>

namespace stretto::coll {

struct Fold {
  int size;
  int core;    // greatest power of two that is not more than size
  int excess;  // pairs

  explicit Fold(int members)
      : size(members), core(static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))), excess(members - core) {}

  [[nodiscard]] bool paired(int member) const { return member < 2 * excess; }
  [[nodiscard]] bool outside(int member) const { return paired(member) && member % 2 == 0; }
  [[nodiscard]] int partner(int member) const { return member ^ 1; }
  // Number of a member that is not outside.
  [[nodiscard]] int number(int member) const { return paired(member) ? member / 2 : member - excess; }
  [[nodiscard]] int member(int number) const { return number < excess ? 2 * number + 1 : number + excess; }
  // The members a core number stands for: [first, last). Also what core numbers below it stand for ends there.
  [[nodiscard]] int first(int number) const { return number < excess ? 2 * number : number + excess; }
  [[nodiscard]] int rounds() const { return std::countr_zero(static_cast<unsigned>(core)); }
};

}  // namespace stretto::coll
