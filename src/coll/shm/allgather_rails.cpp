// SPDX-License-Identifier: BSD-3-Clause
// Allgather by rails: a Reduce_scatter by rails backwards. The ranks with the same number in their
// groups share their blocks, on the highest level first. So each rank of a lowest group gets a
// stripe from afar, which the others then read in the cache that they share. From afar come
// m (P - g)/g bytes to each of g ranks, and m (P - P/g) from its neighbours.
#include "coll/shm/collectives.hpp"
#include "coll/shm/packed_blocks.hpp"
#include "coll/shm/rails.hpp"

namespace stretto::coll_shm {

namespace {

class RailedGather {
 public:
  RailedGather(shm::Call& call, const Region& own, const Blocks& receive, const Tiers& rails)
      : call_(call),
        own_(own),
        receive_(receive),
        rails_(rails),
        block_(own),
        memory_(block_.bytes() * static_cast<unsigned>(call.whole().size())) {}

  void run() {
    if (memory_.missing()) return call_.fail(Status::no_memory);
    collect();
    for (int level = rails_.groups.count() - 1; level >= 0 && call_.status() == Status::ok; --level) share(level);
    call_.turn_to(call_.whole());
    if (call_.status() != Status::ok) return;
    unpack_blocks(receive_, memory_.get(), rails_.groups.order(), block_.bytes());
    if (block_.bytes() > receive_.at(0).bytes()) call_.fail(Status::truncated);
  }

 private:
  // Positions in the order of the rails.
  [[nodiscard]] Region at(int from, int to) const {
    return block_.region(memory_.get() + static_cast<unsigned>(from) * block_.bytes(), to - from);
  }

  // The blocks of ranks that have no slice of their own, and of this one.
  void collect() {
    const topo::Groups& groups = rails_.groups;
    shm::Team& whole = call_.whole();
    const int self = whole.rank();
    if (groups.server() != self) return send_together(call_, whole.to(groups.server()), own_);
    for (int i = groups.served_from(); i < groups.served_to(); ++i) {
      const int rank = groups.order()[static_cast<std::size_t>(i)];
      rank == self ? region_copy(at(i, i + 1), own_) : receive_together(call_, whole.channel(rank), at(i, i + 1));
    }
  }

  void share(int level) {
    const topo::Group& group = rails_.groups[level];
    const auto slice_of = [&](int member) {
      const auto m = static_cast<std::size_t>(member);
      return at(group.cuts[m], group.cuts[m + 1]);
    };
    const auto slices = static_cast<int>(group.cuts.size()) - 1;
    call_.turn_to(*rails_.teams[level]);
    shm::Outgoing mine;
    if (group.index < slices) start_message(call_, mine, call_.team().board(), slice_of(group.index));
    receive_slices(call_, From::boards, slices, slice_of, mine);
  }

  shm::Call& call_;
  const Region& own_;
  const Blocks& receive_;
  const Tiers& rails_;
  PackedBlock block_;
  TemporaryBuffer memory_;
};

}  // namespace

void allgather_rails(shm::Call& call, const Region& own, const Blocks& receive, const Tiers& rails) {
  RailedGather(call, own, receive, rails).run();
}

}  // namespace stretto::coll_shm
