// SPDX-License-Identifier: BSD-3-Clause
// How any number of members runs an algorithm for a power of two of them, or for any core of at least half of them.
// Below the excess, pairs of neighbours stand together: the odd one works for both and the even one waits outside.
// Those that take part, numbered in order, are the core; a core number still stands for neighbouring members, so the
// order of contributions is kept.
#pragma once
#include <bit>

namespace stretto::coll {

struct Fold {
  int size;
  int core;    // those that take part
  int excess;  // pairs

  // Of the greatest power of two that is not more than all members.
  explicit Fold(int members) : Fold(members, static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))) {}
  Fold(int members, int core_members) : size(members), core(core_members), excess(members - core_members) {}

  [[nodiscard]] bool paired(int member) const { return member < 2 * excess; }
  [[nodiscard]] bool outside(int member) const { return paired(member) && member % 2 == 0; }
  [[nodiscard]] int partner(int member) const { return member ^ 1; }
  // Number of a member that is not outside.
  [[nodiscard]] int number(int member) const { return paired(member) ? member / 2 : member - excess; }
  [[nodiscard]] int member(int number) const { return number < excess ? 2 * number + 1 : number + excess; }
  // The members a core number stands for: [first, last). Also what core numbers below it stand for ends there.
  [[nodiscard]] int first(int number) const { return number < excess ? 2 * number : number + excess; }
  // Of a power of two.
  [[nodiscard]] int rounds() const { return std::countr_zero(static_cast<unsigned>(core)); }
};

}  // namespace stretto::coll
