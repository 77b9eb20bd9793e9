// SPDX-License-Identifier: BSD-3-Clause
// Gather of short blocks by tiers: a leader puts together what its group has, and hands it on as
// one message. The lowest rank gets all, and sends it to the root. Groups are of neighbouring
// ranks, so what a leader has is in the order of the ranks.
#include "coll/shm/collectives.hpp"
#include "coll/shm/packed_blocks.hpp"
#include "coll/shm/parts.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

namespace {

// Packed blocks, by rank. So those of all ranks below a member are one message.
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

}  // namespace

void gather_tiers(shm::Call& call, const Region& own, const Blocks& receive, int root, const Tiers& tiers) {
  shm::Team& whole = call.whole();
  const int self = whole.rank();
  BlocksOfTiers blocks(own, tiers, whole.size(), tiers.leads(0) || self == root);
  if (blocks.missing()) return call.fail(Status::no_memory);
  if (tiers.leads(0)) region_copy(blocks.of_rank(self), own);
  for (int tier = 0; tier < tiers.count() && call.status() == Status::ok; ++tier) {
    shm::Team& team = *tiers.teams[tier];
    call.turn_to(team);
    if (!tiers.leads(tier)) {
      send_together(call, team.to(0), tier == 0 ? own : blocks.below(tier, tiers.groups[tier].index));
      continue;
    }
    for (int member = 1; member < team.size() && call.status() == Status::ok; ++member)
      receive_together(call, team.channel(member), blocks.below(tier, member));
  }
  call.turn_to(whole);
  if (call.status() != Status::ok) return;
  if (root != 0 && self == 0) send_together(call, whole.to(root), blocks.all());
  if (self != root) return;
  if (root != 0) receive_together(call, whole.channel(0), blocks.all());
  if (call.status() != Status::ok) return;
  for (int rank = 0; rank < whole.size(); ++rank) region_copy(receive.at(rank), blocks.of_rank(rank));
  if (own.bytes() > receive.at(0).bytes()) call.fail(Status::truncated);
}

}  // namespace stretto::coll_shm
