// SPDX-License-Identifier: BSD-3-Clause
// What a unit of memory stands for in a symbolic execution: one rank's contribution, or two terms
// combined. Equal terms have equal numbers. So two ranks agree to the last bit if their terms are
// the same. The verifier uses this; it is not in the preload library.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace stretto::sched {

// Maps pairs of numbers to numbers. clear() takes constant time.
class PairMap {
 public:
  void clear();
  // The value of a key. Sets `fresh` if the key is new.
  std::uint32_t& at(std::uint64_t key, bool* fresh);

 private:
  struct Place {
    std::uint64_t key;
    std::uint32_t value;
    std::uint32_t round;  // of the map's life; places of other rounds are empty
  };
  void grow();
  std::vector<Place> places_;
  std::uint32_t round_ = 1;
  std::size_t used_ = 0;
};

class Terms {
 public:
  using Id = std::uint32_t;
  static constexpr Id kUndefined = 0;
  static constexpr Id kBad = ~Id{0};

  // Starts with terms of so many ranks. `commutative`: a op b is b op a.
  void start(int ranks, bool commutative);
  [[nodiscard]] static Id of_rank(int rank) { return static_cast<Id>(rank) + 1; }
  // kBad: a contribution would count twice. Where operations do not commute, kBad also means: the
  // right term does not follow the left one.
  Id combine(Id left, Id right);
  // The ranks of both, once each.
  Id unite(Id left, Id right);
  // Whether a term contains every rank of [first, last) once, and no other rank.
  [[nodiscard]] bool is_exactly(Id term, int first, int last) const;
  [[nodiscard]] std::pair<int, int> bounds(Id term) const;

 private:
  struct Interval {
    int first, last;
  };
  struct Term {
    std::uint32_t intervals, count;  // sorted, not adjacent
  };
  Id make(Id left, Id right, bool may_share);

  bool commutative_ = false;
  std::vector<Term> terms_;
  std::vector<Interval> intervals_;
  PairMap combined_;
  PairMap united_;
};

}  // namespace stretto::sched
