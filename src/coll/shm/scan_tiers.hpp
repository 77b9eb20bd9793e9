// SPDX-License-Identifier: BSD-3-Clause
// Scan and Exscan by tiers of neighbouring ranks. A member of a tier publishes what all ranks below
// it have together. It combines what the members before it published. The first member combines all
// of it and takes that to the next tier. From there it brings what the ranks before the tier have
// together, and the other members put that in front of what they found.
#pragma once
#include "coll/shm/scan_flat.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

template <class Parts>
class TieredScan {
 public:
  TieredScan(shm::Call& call, const Parts& parts, const Tiers& tiers)
      : call_(call),
        parts_(parts),
        tiers_(tiers),
        bytes_(parts.bytes()),
        stride_((bytes_ + 63) & ~std::uint64_t{63}),
        memory_(3 * stride_) {}

  void run(bool exclusive) {
    if (memory_.missing()) return call_.fail(Status::no_memory);
    int tier = climb();
    for (; tier >= 0 && call_.status() == Status::ok; --tier) descend(tier);
    if (call_.status() == Status::ok) finish(exclusive);
  }

 private:
  [[nodiscard]] Region all() const { return plain(memory_.get(), bytes_); }
  [[nodiscard]] Region before() const { return plain(memory_.get() + stride_, bytes_); }
  [[nodiscard]] Region arrived() const { return plain(memory_.get() + 2 * stride_, bytes_); }

  // Returns the last tier that this rank was in.
  int climb() {
    for (int tier = 0;; ++tier) {
      shm::Team& team = *tiers_.teams[tier];
      call_.turn_to(team);
      const Region own = tier == 0 ? parts_.own(0, bytes_) : all();
      const bool goes_on = team.rank() == 0 && !tiers_.is_top(tier);
      combine_first(call_, parts_.with(own, team.rank() == 0 ? all() : before()), goes_on ? team.size() : team.rank());
      has_before_ = team.rank() != 0;
      if (!goes_on || call_.status() != Status::ok) return tier;
    }
  }

  // Hands on what the ranks before this tier have, if there are any.
  void descend(int tier) {
    shm::Team& team = *tiers_.teams[tier];
    if (tiers_.is_top(tier) || tiers_.is_first(tier)) return;
    call_.turn_to(team);
    if (team.rank() == 0) return send_together(call_, team.board(), before());
    receive_together(call_, team.member(0).board, arrived());
    if (call_.status() == Status::ok) parts_.join(before(), arrived(), before());
  }

  void finish(bool exclusive) {
    const Region own = parts_.own(0, bytes_), out = parts_.out(0, bytes_);
    if (exclusive && has_before_) region_copy(out, before());
    if (!exclusive && has_before_) parts_.join(out, before(), own);
    if (!exclusive && !has_before_ && !parts_.in_place()) region_copy(out, own);
  }

  shm::Call& call_;
  const Parts& parts_;
  const Tiers& tiers_;
  std::uint64_t bytes_;
  std::uint64_t stride_;
  TemporaryBuffer memory_;  // all(), before(), arrived()
  bool has_before_ = false;
};

template <class Parts>
void scan_tiers(shm::Call& call, const Parts& parts, bool exclusive, const Tiers& tiers) {
  TieredScan<Parts>(call, parts, tiers).run(exclusive);
}

}  // namespace stretto::coll_shm
