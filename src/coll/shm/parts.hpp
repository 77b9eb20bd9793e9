// SPDX-License-Identifier: BSD-3-Clause
// What the reductions over shared memory have in common, whichever way they combine (reduce.cpp:
// kernels; ordered.cpp: a function).
//
// `Parts` is what is combined. Lengths are those of the contributions' data in bytes, the same on
// all ranks. Cuts are between elements.
//
//   bytes(), in_place(), good()       of this rank's contribution
//   own(begin, end), out(begin, end)  regions
//   begin(rank, size)                 where a rank's slice begins
//   least_ranks_to_split()            from which Reduce goes by slices
//   cut(team, bytes, busy)            for messages of that length; busy: see Tuning::Fragments
//   combine_whole(...)                short contributions, if it can; false: nothing was done
//   Combiner, combiner(...)           see combine.hpp
//   Link, link(...)                   one rank's place in a chain
#pragma once
#include <cstdlib>
#include <cstring>

#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

// Memory for a part of a result that has no place in the user's memory.
class TemporaryBuffer {
 public:
  explicit TemporaryBuffer(std::uint64_t bytes)
      : memory_(bytes == 0 ? nullptr : static_cast<char*>(std::malloc(bytes))),
        missing_(bytes != 0 && memory_ == nullptr) {}
  ~TemporaryBuffer() { std::free(memory_); }
  TemporaryBuffer(const TemporaryBuffer&) = delete;
  TemporaryBuffer& operator=(const TemporaryBuffer&) = delete;
  [[nodiscard]] char* get() const { return memory_; }
  [[nodiscard]] bool missing() const { return missing_; }

 private:
  char* memory_;
  bool missing_;
};

// Steps the messages that go out through channels, in one order for all ranks: by position, then by
// destination. All are cut alike. Returns whether one moved.
//
// Why in order. A combiner takes a byte only when all ranks have sent it, so a slot may wait for
// other ranks' slots. Consider the rank whose next fragment comes first in this order. All ranks
// have sent all that precedes it, so all that will be combined. The slots that it lies in become
// free, among them all that this rank holds. So this rank goes on. In any other order, three ranks
// with one slot left each can wait for one another.
//
// ordered.cpp takes whole pieces, rank by rank. Consider the piece and rank that come first among
// those not yet taken. All ranks have taken all that this rank has sent before it, if no fragment
// belongs to two pieces. So the piece is sent, and taken.
inline bool step_in_order(shm::Call& call) {
  shm::Team& team = call.team();
  int next = -1;
  std::uint64_t position = ~std::uint64_t{0};
  for (int r = 0; r < team.size(); ++r) {
    const shm::Outgoing& out = team.states()[r].out;
    if (r == team.rank() || out.done() || out.written() >= position) continue;
    next = r;
    position = out.written();
  }
  return next >= 0 && team.states()[next].out.step(call, team.to(next));
}

// Sends a complete message at once, if it is one fragment and there is room. Returns whether it
// did.
inline bool start_message(shm::Call& call, shm::Outgoing& out, shm::OutQueue& queue, const Region& region,
                          const shm::Cut& cut = {}) {
  const bool is_one = cut.fragment_bytes == 0 || region.bytes() <= cut.fragment_bytes;
  if (is_one && shm::send_whole(call, queue, region)) {
    out.skip();
    return true;
  }
  out.start(region, false, cut);
  return false;
}

// Where the slice of `rank` begins if the first `owners` ranks have one each.
template <class Parts>
std::uint64_t slice_begin(const Parts& parts, int rank, int owners) {
  return parts.begin(rank < owners ? rank : owners, owners);
}
// Combines this rank's slice of what all send. A rank without a slice has nothing to combine.
template <class Parts>
typename Parts::Combiner slice_combiner(shm::Team& team, const Parts& parts, int owners, const Region& result) {
  const bool owns = team.rank() < owners;
  return parts.combiner(team, From::channels, 0, owns ? team.size() : 0, slice_begin(parts, team.rank(), owners),
                        result);
}

// How slices are cut: every rank copies and combines all the time.
template <class Parts>
shm::Cut slice_cut(const shm::Team& team, const Parts& parts) {
  return parts.cut(team, parts.bytes() / team.size(), true);
}

// Sends the part [begin(r), begin(r + 1)) of this rank's contribution to rank r, one of the first
// `owners`, in the order above. After the first one that is not sent at once, all others wait for
// their turns.
template <class Parts, class Begin>
void start_parts(shm::Call& call, const Parts& parts, Begin begin, const shm::Cut& cut, int owners) {
  shm::Team& team = call.team();
  bool sent = true;
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    shm::Outgoing& out = team.states()[r].out;
    if (r >= owners) {
      out.skip();
      continue;
    }
    const Region part = parts.own(begin(r), begin(r + 1));
    if (sent) {
      sent = start_message(call, out, team.to(r), part, cut);
    } else {
      out.start(part, false, cut);
    }
  }
}

inline bool unsent(const shm::Team& team, int peer) { return !team.states()[peer].out.done(); }

// Publishes the rest of `mine`, this rank's contribution, on the board. Meanwhile `combiner`
// combines what all ranks published. `rest` steps what else the call has to read.
template <class Parts, class Rest, class RestDone>
void publish_and_combine(shm::Call& call, const Parts& parts, shm::Outgoing& mine, typename Parts::Combiner& combiner,
                         Rest rest, RestDone rest_done) {
  shm::Team& team = call.team();
  run_together(
      call,
      [&] {
        bool moved = !mine.done() && mine.step(call, team.board());
        if (parts.in_place()) combiner.allow(mine.done() ? parts.bytes() : mine.written());
        if (!combiner.done() && combiner.step(call)) moved = true;
        return rest() || moved;
      },
      [&] { return mine.done() && combiner.done() && rest_done(); },
      [&](int peer) {
        const shm::MessageState& state = team.states()[peer];
        return !mine.done() || combiner.misses(peer) || misses(state.in, team.member(peer).board);
      });
}

}  // namespace stretto::coll_shm
