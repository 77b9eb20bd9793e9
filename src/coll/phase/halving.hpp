// SPDX-License-Identifier: BSD-3-Clause
// Recursive halving of a vector among a power of two of members, nearest partners first, and its
// reverse. In round j the core numbers of partners differ in bit j. Each gives the other the half
// that the other keeps. So every partial sum stands for neighbouring members, in order, and
// operations need not commute (Rabenseifner 2004: vector halving, distance doubling). Or partners
// are those of a Bine butterfly, and operations must commute.
#pragma once
#include "coll/algorithm.hpp"
#include "coll/shape/bine.hpp"
#include "coll/shape/fold.hpp"

namespace stretto::coll {

class Halving {
 public:
  enum class Partners : std::uint8_t { bits, bine };
  Halving(Builder& builder, const Group& group, const Fold& fold, Partners partners = Partners::bits)
      : builder_(builder),
        group_(group),
        fold_(fold),
        partners_(partners),
        bine_(fold.core, fold.number(group.me)),
        number_(partners == Partners::bits ? fold.number(group.me) : bine_.label()) {}

  // What core number `number` keeps of the vector after so many rounds.
  [[nodiscard]] static Slice kept(Slice vector, int number, int rounds);

  // Every core member gets its part of the sum of all vectors, at its place in `work`. `in` may be
  // `work` itself.
  void reduce_scatter(Slice in, Slice work);
  // Every core member gets all parts. Each begins with its own, at its place in `work`.
  void allgather(Slice work);
  // The core member `root_number` gets all parts. Not for Bine butterflies.
  void gather(Slice work, int root_number);

 private:
  [[nodiscard]] int partner_rank(int round) const {
    return group_.rank(fold_.member(partners_ == Partners::bits ? number_ ^ 1 << round : bine_.partner(round)));
  }
  [[nodiscard]] bool upper(int round) const { return number_ >> round & 1; }

  Builder& builder_;
  const Group& group_;
  const Fold& fold_;
  Partners partners_;
  BineButterfly bine_;
  int number_;  // by whose bits vectors are halved
};

// An allreduce of these two phases (allreduce/halving_doubling.cpp).
void halve_and_double(Builder& b, const Call& call, Halving::Partners partners);

}  // namespace stretto::coll
