// SPDX-License-Identifier: BSD-3-Clause
// Alltoall of few bytes by rails: what goes the same way goes in one message. In its lowest group a
// rank sends each member the blocks for all ranks that this member's slice serves. Those with the
// same slice go on in the same way, level by level. With g ranks in a group on each of L levels, a
// rank sends L (g - 1) messages of P/g blocks and copies L P blocks, where P - 1 messages of a
// block are as many lines.
//
// Blocks lie by destination, in the order of the rails, and by source, in the order of places. So
// what goes to a member is one piece.
#include <algorithm>

#include "coll/shm/collectives.hpp"
#include "coll/shm/packed_blocks.hpp"
#include "coll/shm/rails.hpp"

namespace stretto::coll_shm {

namespace {

class RailedExchange {
 public:
  RailedExchange(shm::Call& call, const Blocks& send, const Blocks& receive, const Tiers& rails)
      : call_(call),
        send_(send),
        receive_(receive),
        rails_(rails),
        block_(send.at(0)),
        memory_(2 * most_blocks() * block_.bytes()) {}

  void run() {
    if (memory_.missing()) return call_.fail(Status::no_memory);
    here_ = memory_.get();
    there_ = here_ + most_blocks() * block_.bytes();
    pack_blocks(here_, send_, rails_.groups.order(), block_.bytes());
    for (int level = 0; level < rails_.groups.count() && call_.status() == Status::ok; ++level) exchange(level);
    call_.turn_to(call_.whole());
    if (call_.status() != Status::ok) return;
    deliver();
    if (call_.status() != Status::ok) return;
    unpack_blocks(receive_, here_, rails_.groups.places(), block_.bytes());
    if (block_.bytes() > receive_.at(0).bytes()) call_.fail(Status::truncated);
  }

 private:
  // Before and after each level.
  [[nodiscard]] std::uint64_t most_blocks() const {
    std::uint64_t most = rails_.groups.order().size();
    for (int level = 0; level < rails_.groups.count(); ++level) {
      const topo::Group& group = rails_.groups[level];
      if (slices(group) > group.index) most = std::max(most, std::uint64_t{rows(group, group.index)} * sources(group));
    }
    return most;
  }
  [[nodiscard]] static int slices(const topo::Group& group) { return static_cast<int>(group.cuts.size()) - 1; }
  // Destinations that a member's slice serves, and sources that the group has.
  [[nodiscard]] static unsigned rows(const topo::Group& group, int member) {
    const auto m = static_cast<std::size_t>(member);
    return static_cast<unsigned>(group.cuts[m + 1] - group.cuts[m]);
  }
  [[nodiscard]] static unsigned sources(const topo::Group& group) {
    return static_cast<unsigned>(group.origins[group.origins.size() - 1]);
  }

  // What this rank has for that member, and where what comes from it is put.
  [[nodiscard]] Region out(const topo::Group& group, int member) const {
    const auto before = static_cast<unsigned>(group.cuts[static_cast<std::size_t>(member)] - group.cuts[0]);
    const int blocks = static_cast<int>(rows(group, member)) * width(group, group.index);
    return block_.region(here_ + std::uint64_t{before} * static_cast<unsigned>(width(group, group.index)) * bytes(),
                         blocks);
  }
  [[nodiscard]] Region in(const topo::Group& group, int member) const {
    const unsigned rows_here = rows(group, group.index);
    const auto before = static_cast<unsigned>(group.origins[static_cast<std::size_t>(member)]);
    return block_.region(there_ + std::uint64_t{rows_here} * before * bytes(),
                         static_cast<int>(rows_here) * width(group, member));
  }
  [[nodiscard]] static int width(const topo::Group& group, int member) {
    const auto m = static_cast<std::size_t>(member);
    return group.origins[m + 1] - group.origins[m];
  }
  [[nodiscard]] std::uint64_t bytes() const { return block_.bytes(); }

  void exchange(int level) {
    const topo::Group& group = rails_.groups[level];
    shm::Team& team = *rails_.teams[level];
    call_.turn_to(team);
    const bool receives = group.index < slices(group);
    bool all = true;
    for_each_peer(team, [&](int peer) {
      shm::MessageState& state = team.states()[peer];
      state.in.skip();
      state.out.skip();
      if (peer < slices(group)) all = start_sending(call_, peer, out(group, peer), true) && all;
    });
    if (receives) region_copy(in(group, group.index), out(group, group.index));
    shm::Waiter waiter(team.policy());
    for_each_peer(team, [&](int peer) {
      if (!receives) return;
      if (all) {
        all = start_receiving<true>(call_, From::channels, peer, in(group, peer), true, waiter);
      } else {
        team.states()[peer].in.start(in(group, peer), false);
      }
    });
    if (!all) {
      run_together(
          call_,
          [&] {
            const bool moved = step_outgoing(call_);
            return step_incoming(call_, From::channels) || moved;
          },
          [&] { return outgoing_done(team) && incoming_done(team); },
          [&](int peer) { return unsent(team, peer) || misses(team.states()[peer].in, team.channel(peer)); });
    }
    if (receives) join(group);
  }

  // Puts what has come from all members together, by destination.
  void join(const topo::Group& group) {
    const unsigned rows_here = rows(group, group.index);
    if (rows_here == 1) return std::swap(here_, there_);
    const std::uint64_t row_bytes = sources(group) * bytes();
    for (int member = 0; member < group.size(); ++member) {
      const std::uint64_t length = static_cast<unsigned>(width(group, member)) * bytes();
      char* const to = here_ + static_cast<unsigned>(group.origins[static_cast<std::size_t>(member)]) * bytes();
      const char* const from = in(group, member).base;
      with_length(length, [=](auto each) {
        for (unsigned row = 0; row < rows_here; ++row) std::memcpy(to + row * row_bytes, from + row * each, each);
      });
    }
  }

  // To those that have no slice of their own, and to this rank.
  void deliver() {
    const topo::Groups& groups = rails_.groups;
    shm::Team& whole = call_.whole();
    const int ranks = whole.size(), self = whole.rank();
    const std::uint64_t row = static_cast<unsigned>(ranks) * bytes();
    if (groups.server() != self)
      return receive_together(call_, whole.channel(groups.server()), block_.region(here_, ranks));
    const char* own = here_;
    for (int i = groups.served_from(); i < groups.served_to(); ++i) {
      const int rank = groups.order()[static_cast<std::size_t>(i)];
      char* const its = here_ + static_cast<unsigned>(i - groups.served_from()) * row;
      if (rank == self)
        own = its;
      else
        send_together(call_, whole.to(rank), block_.region(its, ranks));
    }
    here_ = const_cast<char*>(own);
  }

  shm::Call& call_;
  const Blocks& send_;
  const Blocks& receive_;
  const Tiers& rails_;
  PackedBlock block_;
  TemporaryBuffer memory_;
  char* here_ = nullptr;   // by destination, then by source
  char* there_ = nullptr;  // by member, then as here
};

}  // namespace

void alltoall_rails(shm::Call& call, const Blocks& send, const Blocks& receive, const Tiers& rails) {
  RailedExchange(call, send, receive, rails).run();
}

}  // namespace stretto::coll_shm
