// SPDX-License-Identifier: BSD-3-Clause
// Blocks of one length as they pass through tiers of neighbouring ranks: packed, by rank. So the
// blocks of all ranks below a member are one message.
#pragma once
#include "coll/shm/packed_blocks.hpp"
#include "coll/shm/parts.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

class BlocksOfTiers {
 public:
  // `block`: this rank's own. Without `keeps` there is memory for none.
  BlocksOfTiers(const Region& block, const Tiers& tiers, int ranks, bool keeps)
      : tiers_(tiers),
        ranks_(ranks),
        block_(block),
        memory_(keeps ? block.bytes() * static_cast<unsigned>(ranks) : 0) {}

  [[nodiscard]] bool missing() const { return memory_.missing(); }
  [[nodiscard]] std::uint64_t bytes() const { return block_.bytes(); }
  [[nodiscard]] Region all() const { return of(0, ranks_); }
  [[nodiscard]] Region of_rank(int rank) const { return of(rank, rank + 1); }
  // Those of the ranks for which a member of this rank's group stands.
  [[nodiscard]] Region below(int tier, int member) const {
    const Array<int>& members = tiers_.groups[tier].members;
    const auto m = static_cast<std::size_t>(member);
    if (m + 1 < members.size()) return of(members[m], members[m + 1]);
    int end = members[m] + 1;
    while (end < ranks_ && tiers_.member_over(tier, end) == member) ++end;
    return of(members[m], end);
  }

 private:
  [[nodiscard]] Region of(int from, int to) const {
    return block_.region(memory_.get() + static_cast<unsigned>(from) * block_.bytes(), to - from);
  }

  const Tiers& tiers_;
  int ranks_;
  PackedBlock block_;
  TemporaryBuffer memory_;
};

}  // namespace stretto::coll_shm
