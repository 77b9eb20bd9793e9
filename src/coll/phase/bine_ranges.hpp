// SPDX-License-Identifier: BSD-3-Clause
// The parts that a core member of a Bine butterfly has after so many rounds: those of neighbours in
// the ring of members, in one piece or in two where the ring closes.
#pragma once
#include "coll/shape/bine.hpp"
#include "coll/shape/fold.hpp"
#include "coll/shape/parts.hpp"

namespace stretto::coll {

class BineRanges {
 public:
  BineRanges(const Fold& fold, int number) : fold_(fold), butterfly_(fold.core, number) {}

  [[nodiscard]] int partner(int round) const { return butterfly_.partner(round); }
  // The parts of the members joined to core number `number` after so many rounds.
  template <class Visit>
  void each_piece(const Parts& parts, int number, int rounds, Visit visit) const {
    const int first = BineButterfly(fold_.core, number).first(rounds), end = first + (1 << rounds);
    const int seam = end < fold_.core ? end : fold_.core;
    visit(parts.range(fold_.first(first), fold_.first(seam)));
    if (seam < end) visit(parts.range(0, fold_.first(end - seam)));
  }

 private:
  const Fold& fold_;
  BineButterfly butterfly_;
};

}  // namespace stretto::coll
