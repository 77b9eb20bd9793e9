// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving of a vector among a power of two of members, nearest partners first, and its
// reverse. In round j the core numbers of partners differ in bit j. Each gives the other the half
// that the other keeps. So every partial sum stands for neighbouring members, in order, and
// operations need not commute (Rabenseifner 2004: vector halving, distance doubling).
#pragma once
#include "coll/algorithm.hpp"
#include "coll/shape/fold.hpp"

namespace stretto::coll {

class Halving {
 public:
  Halving(Builder& builder, const Group& group, const Fold& fold)
      : builder_(builder), group_(group), fold_(fold), number_(fold.number(group.me)) {}

  // What core number `number` keeps of the vector after so many rounds.
  [[nodiscard]] static Slice kept(Slice vector, int number, int rounds);

  // Every core member gets its part of the sum of all vectors, at its place in `work`. `in` may be
  // `work` itself.
  void reduce_scatter(Slice in, Slice work);
  // Every core member gets all parts. Each begins with its own, at its place in `work`.
  void allgather(Slice work);
  // The core member `root_number` gets all parts.
  void gather(Slice work, int root_number);

 private:
  [[nodiscard]] int partner_rank(int round) const { return group_.rank(fold_.member(number_ ^ 1 << round)); }
  [[nodiscard]] bool upper(int round) const { return number_ >> round & 1; }

  Builder& builder_;
  const Group& group_;
  const Fold& fold_;
  int number_;
};

}  // namespace stretto::coll
