// SPDX-License-Identifier: BSD-3-Clause
// How any number of members runs an algorithm made for a power of two, or for any core of at least
// half of them. The first members form as many pairs of neighbours as there are members too many.
// The odd one of a pair works for both, and the even one waits outside. Those that take part,
// numbered in order, are the core. A core number stands for neighbouring members, so the order of
// contributions is kept.
#pragma once
#include <bit>

namespace stretto::coll {

struct Fold {
  int size;
  int core;    // the number of members that take part
  int excess;  // the number of pairs

  // The core is the greatest power of two that is not more than all members.
  explicit Fold(int members) : Fold(members, static_cast<int>(std::bit_floor(static_cast<unsigned>(members)))) {}
  Fold(int members, int core_members) : size(members), core(core_members), excess(members - core_members) {}

  [[nodiscard]] bool paired(int member) const { return member < 2 * excess; }
  [[nodiscard]] bool outside(int member) const { return paired(member) && member % 2 == 0; }
  [[nodiscard]] int partner(int member) const { return member ^ 1; }
  // The core number of a member that is not outside.
  [[nodiscard]] int number(int member) const { return paired(member) ? member / 2 : member - excess; }
  [[nodiscard]] int member(int number) const { return number < excess ? 2 * number + 1 : number + excess; }
  // The first member that a core number stands for. The members of the number below end there.
  [[nodiscard]] int first(int number) const { return number < excess ? 2 * number : number + excess; }
  // For a core of a power of two.
  [[nodiscard]] int rounds() const { return std::countr_zero(static_cast<unsigned>(core)); }
};

}  // namespace stretto::coll
