// SPDX-License-Identifier: BSD-3-Clause
// Rounds for any number of members in which groups of up to k of them exchange everything with each other: the product
// of the radices is the core of a fold (fold.hpp), which costs two messages more where it is not all members.
#pragma once
#include <algorithm>

#include "coll/shape/fold.hpp"

namespace stretto::coll {

class Radices {
 public:
  // As few messages in a row as groups of up to k allow; of equally many, the greatest core.
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
  static constexpr int kMostRounds = 32;  // of 31 bits
  struct Found {
    int core = 0;
    int of[kMostRounds] = {};
  };

  // The greatest product of so many radices, none greater than the one before it, that is not more than all members.
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
