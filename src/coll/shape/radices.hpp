// SPDX-License-Identifier: BSD-3-Clause
// Rounds for any number of members: in each round, groups of up to k members exchange everything
// with each other. The product of the radices is the core of a fold (fold.hpp). The fold costs two
// messages more where the core is not all members.
#pragma once
#include <algorithm>

#include "coll/shape/fold.hpp"

namespace stretto::coll {

class Radices {
 public:
  // Finds the fewest messages in a row that groups of up to k allow. Among equals it takes the
  // greatest core.
  Radices(int members, int k) : members_(members), most_(std::max(2, k)) {
    int fewest = 0;
    for (long long all = most_; all <= members; all *= most_) ++fewest;
    int least = kMostRounds + 2;
    for (int rounds = fewest; rounds <= fewest + 2; ++rounds) {
      Found found;
      search(found, rounds, most_, 1);
      if (found.core == 0 || 2 * static_cast<long long>(found.core) < members) continue;
      const int messages = rounds + (found.core < members ? 2 : 0);
      if (messages >= least) continue;
      least = messages;
      best_ = found;
      rounds_ = rounds;
    }
  }

  [[nodiscard]] int rounds() const { return rounds_; }
  [[nodiscard]] int operator[](int round) const { return best_.of[round]; }
  [[nodiscard]] Fold fold() const { return {members_, best_.core}; }

 private:
  static constexpr int kMostRounds = 32;  // ranks have 31 bits
  struct Found {
    int core = 0;
    int of[kMostRounds] = {};
  };

  // Finds the greatest product of so many radices that is at most the number of members. No radix
  // is greater than the one before it.
  void search(Found& found, int left, int most, long long product) {
    if (left == 0) {
      if (product <= found.core) return;
      found = trying_;
      found.core = static_cast<int>(product);
      return;
    }
    const int place = depth_++;
    long long reached = product;
    for (int i = 0; i < left && reached <= members_; ++i) reached *= most;
    if (reached > found.core) {
      const auto fits = static_cast<int>(std::min<long long>(most, members_ / product));
      for (int radix = fits; radix >= 2 && found.core < members_; --radix) {
        trying_.of[place] = radix;
        search(found, left - 1, radix, product * radix);
        if (left == 1) break;
      }
    }
    --depth_;
  }

  int members_, most_;
  int rounds_ = 0;
  int depth_ = 0;
  Found trying_;
  Found best_{.core = 1, .of = {}};
};

}  // namespace stretto::coll
