// SPDX-License-Identifier: BSD-3-Clause
// Reduce_scatter by rails: each level combines slices of what the level below left, until a rank
// has its own part. A slice has the parts of all ranks that it serves. So each rank first puts the
// parts into the order of the rails.
#pragma once
#include "coll/shm/rails.hpp"

namespace stretto::coll_shm {

template <class Parts, class Begin>
class RailedScatter {
 public:
  RailedScatter(shm::Call& call, const Parts& parts, Begin begin, const Tiers& rails)
      : call_(call),
        parts_(parts),
        begin_(begin),
        rails_(rails),
        order_(rails.groups.order()),
        memory_(parts.bytes() + (order_.size() + 1) * sizeof *starts_) {}

  void run() {
    if (memory_.missing()) return call_.fail(Status::no_memory);
    sort_parts();
    for (int level = 0; level < rails_.groups.count() && call_.status() == Status::ok; ++level) combine(level);
    call_.turn_to(call_.whole());
    if (call_.status() == Status::ok) deliver();
  }

 private:
  [[nodiscard]] Region at(std::uint64_t from, std::uint64_t to) const { return plain(data_ + from, to - from); }
  [[nodiscard]] std::uint64_t start(int position) const { return starts_[position]; }

  void sort_parts() {
    starts_ = reinterpret_cast<std::uint64_t*>(memory_.get());
    data_ = memory_.get() + (order_.size() + 1) * sizeof *starts_;
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const int rank = order_[i];
      starts_[i] = next;
      next += begin_(rank + 1) - begin_(rank);
      region_copy(at(starts_[i], next), parts_.own(begin_(rank), begin_(rank + 1)));
    }
    starts_[order_.size()] = next;
  }

  void combine(int level) {
    const topo::Group& group = rails_.groups[level];
    const auto& cuts = group.cuts;
    const auto slices = static_cast<int>(cuts.size()) - 1;
    const std::uint64_t base = start(cuts[0]);
    const auto begin = [&](int member) {
      return start(cuts[static_cast<std::size_t>(std::min(member, slices))]) - base;
    };
    const Region all = at(base, start(cuts[cuts.size() - 1]));
    const Region slice = at(base + begin(group.index), base + begin(group.index + 1));
    call_.turn_to(*rails_.teams[level]);
    combine_slices(call_, parts_.with(all, all), begin, slice);
  }

  // To those that have no slice of their own, and to this rank.
  void deliver() {
    const topo::Groups& groups = rails_.groups;
    shm::Team& whole = call_.whole();
    const int self = whole.rank();
    const std::uint64_t length = begin_(self + 1) - begin_(self);
    for (int i = groups.served_from(); i < groups.served_to(); ++i) {
      const int rank = order_[static_cast<std::size_t>(i)];
      const Region part = at(start(i), start(i + 1));
      rank == self ? region_copy(parts_.out(0, length), part) : send_together(call_, whole.to(rank), part);
    }
    if (groups.server() != self) receive_together(call_, whole.channel(groups.server()), parts_.out(0, length));
  }

  shm::Call& call_;
  const Parts& parts_;
  Begin begin_;
  const Tiers& rails_;
  const Array<int>& order_;
  std::uint64_t* starts_ = nullptr;  // by position in that order: where a rank's part begins
  char* data_ = nullptr;
  TemporaryBuffer memory_;
};

template <class Parts, class Begin>
void reduce_scatter_rails(shm::Call& call, const Parts& parts, Begin begin, const Tiers& rails) {
  RailedScatter<Parts, Begin>(call, parts, begin, rails).run();
}

}  // namespace stretto::coll_shm
