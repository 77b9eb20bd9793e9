// SPDX-License-Identifier: BSD-3-Clause
// Reduce, Allreduce, Reduce_scatter(_block), Scan and Exscan, whatever it is that combines (reduce.cpp: kernels;
// ordered.cpp: somebody's function).
//
//   slices     every rank sends slice d of its contribution to rank d, which combines all contributions to it: each
//   rank
//              copies in (P-1)/P of its own and combines m/P of P. Reduce_scatter is that; Allreduce publishes each
//              slice as it grows; Reduce sends it to the root
//   flat       short Allreduce and Scan: everybody publishes all it has and combines what everybody published. One line
//              transfer deep
//   root       short Reduce: all send to the root, which combines
//   chain      long Scan: a rank waits for the prefix of its predecessor, piece by piece, and passes its own on
//
// `Parts` is what is combined. Lengths are those of the contributions' data in bytes, the same on all ranks; cuts are
// made between elements.
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

inline Region plain(const char* base, std::uint64_t bytes) { return {const_cast<char*>(base), bytes, &kPlainByte}; }

// Memory for a part of a result that has no place in the user's.
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

// Steps the messages that go out through channels, in one order for all ranks: by position, then by destination; all
// are cut alike. Returns whether one moved.
//
// Why in order. A combiner takes a byte only when all ranks have sent it, so a slot may wait for other ranks' slots.
// Look at the rank whose next fragment comes first in this order: all that precedes it has been sent by everybody, so
// it will be combined, and the slots it lies in become free, all that this rank holds among them. So this rank goes on.
// Dealt in any order, three ranks with one slot left each can wait for one another. (ordered.cpp takes whole pieces,
// rank by rank: look at the piece and rank that come first among those not yet taken; all that this rank has sent
// before it has been taken, by all, if no fragment belongs to two pieces. So it is sent, and taken.)
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
  return next >= 0 && team.states()[next].out.step(call, team.member(next).to);
}

// A message that is complete: sent at once if it is one fragment and there is room. Returns whether that was so.
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

// How slices are cut: every rank copies and combines all the time.
template <class Parts>
shm::Cut slice_cut(const shm::Team& team, const Parts& parts) {
  return parts.cut(team, parts.bytes() / team.size(), true);
}

// The part [begin(r), begin(r + 1)) of this rank's contribution goes to rank r. In the order above: after the first one
// that is not sent at once, all others wait for their turns.
template <class Parts, class Begin>
void start_parts(shm::Call& call, const Parts& parts, Begin begin, const shm::Cut& cut) {
  shm::Team& team = call.team();
  bool sent = true;
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    shm::Outgoing& out = team.states()[r].out;
    const Region part = parts.own(begin(r), begin(r + 1));
    if (sent) {
      sent = start_message(call, out, team.member(r).to, part, cut);
    } else {
      out.start(part, false, cut);
    }
  }
}

inline bool unsent(const shm::Team& team, int peer) { return !team.states()[peer].out.done(); }

// Publishes the rest of `mine`, this rank's contribution, on the board, while `combiner` combines what everybody
// published. `rest` steps what else the call has to read.
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

template <class Parts>
void allreduce_flat(shm::Call& call, const Parts& parts) {
  shm::Team& team = call.team();
  const Region result = parts.out(0, parts.bytes());
  shm::Outgoing mine;
  const bool sent = start_message(call, mine, team.board(), parts.own(0, parts.bytes()));
  if (sent && parts.combine_whole(call, From::boards, 0, result)) return;
  for (int r = 0; r < team.size(); ++r) team.states()[r].in.skip();
  typename Parts::Combiner all = parts.combiner(team, From::boards, 0, team.size(), 0, result);
  publish_and_combine(call, parts, mine, all, [] { return false; }, [] { return true; });
}

template <class Parts>
void allreduce_slices(shm::Call& call, const Parts& parts) {
  shm::Team& team = call.team();
  const auto begin = [&](int rank) { return parts.begin(rank, team.size()); };
  const int rank = team.rank();
  const Region result = parts.out(begin(rank), begin(rank + 1));
  const shm::Cut cut = slice_cut(team, parts);
  start_parts(call, parts, begin, cut);
  typename Parts::Combiner slice = parts.combiner(team, From::channels, 0, team.size(), begin(rank), result);
  shm::Outgoing board;
  board.start(result, false, cut);
  for (int r = 0; r < team.size(); ++r) {
    if (r != rank) team.states()[r].in.start(parts.out(begin(r), begin(r + 1)), false);
  }
  // In place, slice r of the result comes in over what this rank sends to r. That is in order: r publishes a byte of
  // its slice only after it has read that byte of our contribution.
  run_together(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        board.allow(slice.combined());
        if (!board.done() && board.step(call, team.board())) moved = true;
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && board.done() && incoming_done(team); },
      [&](int peer) {
        return unsent(team, peer) || !board.done() || slice.misses(peer) ||
               misses(team.states()[peer].in, team.member(peer).board);
      });
}

template <class Parts>
void reduce_at_root(shm::Call& call, const Parts& parts, int root) {
  shm::Team& team = call.team();
  if (team.rank() != root) {
    shm::Outgoing message;
    if (start_message(call, message, team.member(root).to, parts.own(0, parts.bytes()))) return;
    return run_together(
        call, [&] { return message.step(call, team.member(root).to); }, [&] { return message.done(); },
        [&](int peer) { return peer == root; });
  }
  const Region result = parts.out(0, parts.bytes());
  if (parts.combine_whole(call, From::channels, 0, result)) return;
  typename Parts::Combiner all = parts.combiner(team, From::channels, 0, team.size(), 0, result);
  run_together(
      call, [&] { return all.step(call); }, [&] { return all.done(); }, [&](int peer) { return all.misses(peer); });
}

// Slices, combined by their owners, follow the contributions through the owners' channels to the root.
template <class Parts>
void reduce_slices(shm::Call& call, const Parts& parts, int root) {
  shm::Team& team = call.team();
  const auto begin = [&](int rank) { return parts.begin(rank, team.size()); };
  const int rank = team.rank();
  const bool is_root = rank == root;
  const std::uint64_t length = begin(rank + 1) - begin(rank);
  const TemporaryBuffer aside(is_root ? 0 : length);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region result = is_root ? parts.out(begin(rank), begin(rank + 1)) : plain(aside.get(), length);
  const shm::Cut cut = slice_cut(team, parts);
  start_parts(call, parts, begin, cut);
  typename Parts::Combiner slice = parts.combiner(team, From::channels, 0, team.size(), begin(rank), result);
  shm::Outgoing to_root;
  if (!is_root) to_root.start(result, false, cut);
  for (int r = 0; r < team.size(); ++r) {
    shm::Incoming& in = team.states()[r].in;
    in.skip();
    if (is_root && r != root) in.start(parts.out(begin(r), begin(r + 1)), false);
  }
  run_together(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        to_root.allow(slice.combined());
        // Results wait until all contributions are out: the root reads them last, and they would keep slots from
        // others.
        if (!to_root.done() && outgoing_done(team) && to_root.step(call, team.member(root).to)) moved = true;
        return (slice.done() && step_incoming(call, From::channels)) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && to_root.done() && incoming_done(team); },
      [&](int peer) {
        return unsent(team, peer) || (peer == root && !to_root.done()) || slice.misses(peer) ||
               (slice.done() && misses(team.states()[peer].in, team.member(peer).channel));
      });
}

template <class Parts, class Begin>
void reduce_scatter_parts(shm::Call& call, const Parts& parts, Begin begin) {
  shm::Team& team = call.team();
  const int rank = team.rank();
  const std::uint64_t length = begin(rank + 1) - begin(rank);
  // In place, the result lies over what goes to rank 0.
  const TemporaryBuffer aside(parts.in_place() ? length : 0);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region out = parts.out(0, length);
  const Region result = parts.in_place() ? plain(aside.get(), length) : out;
  start_parts(call, parts, begin, slice_cut(team, parts));
  if (!outgoing_done(team) || !parts.combine_whole(call, From::channels, begin(rank), result)) {
    typename Parts::Combiner slice = parts.combiner(team, From::channels, 0, team.size(), begin(rank), result);
    run_together(
        call,
        [&] {
          const bool moved = step_in_order(call);
          return (!slice.done() && slice.step(call)) || moved;
        },
        [&] { return outgoing_done(team) && slice.done(); },
        [&](int peer) { return unsent(team, peer) || slice.misses(peer); });
  }
  if (parts.in_place() && call.status() == Status::ok) region_copy(out, result);
}

// The last ranks' boards do not concern a prefix; they are read all the same.
template <class Parts>
void scan_flat(shm::Call& call, const Parts& parts, bool exclusive) {
  shm::Team& team = call.team();
  const int last = team.rank() + (exclusive ? 0 : 1);
  for (int r = 0; r < team.size(); ++r) {
    team.states()[r].in.skip();
    if (r > team.rank()) team.states()[r].in.start(kNothing, true);
  }
  typename Parts::Combiner prefix =
      parts.combiner(team, From::boards, 0, last, 0, last == 0 ? kNothing : parts.out(0, parts.bytes()));
  shm::Outgoing mine;
  (void)start_message(call, mine, team.board(), parts.own(0, parts.bytes()));
  publish_and_combine(
      call, parts, mine, prefix, [&] { return step_incoming(call, From::boards); },
      [&] { return incoming_done(team); });
}

// The end of a chain gets a prefix that comes in one piece.
template <class Link>
bool pass_whole(shm::Call& call, shm::InQueue& queue, std::uint64_t bytes, Link& link) {
  shm::Waiter waiter(call.team().policy());
  alignas(64) char aside[shm::kMostInlineBytes];
  const char* const prefix = shm::peek_whole(call, queue, bytes, waiter, aside);
  if (prefix == nullptr) return false;
  if (bytes != 0) link.pass(prefix, bytes);
  shm::take_whole(call, queue, bytes);
  return true;
}

// Reads the predecessor's prefix and passes its own on as it grows.
template <class Parts>
void scan_chain(shm::Call& call, const Parts& parts, bool exclusive) {
  shm::Team& team = call.team();
  const int before = team.rank() - 1;
  const int after = team.rank() + 1;
  const bool first = before < 0;
  const bool end = after == team.size();
  const std::uint64_t bytes = parts.bytes();
  // A prefix that is nobody's result here.
  const TemporaryBuffer aside(exclusive && !first && !end ? bytes : 0);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region forward = first ? parts.own(0, bytes) : exclusive ? plain(aside.get(), bytes) : parts.out(0, bytes);
  typename Parts::Link link = parts.link(end ? kNothing : forward, exclusive);
  shm::Outgoing out;
  // The first rank's result is its own.
  const bool is_result = first && !exclusive && !parts.in_place();
  OverlappedCopy copy =
      is_result ? OverlappedCopy(parts.out(0, bytes), parts.own(0, bytes), team.stores_past(bytes)) : OverlappedCopy();
  if (first && !end && start_message(call, out, team.member(after).to, forward, parts.cut(team, bytes, false)))
    return copy.finish();
  if (!first && !end) out.start(forward, false, parts.cut(team, bytes, false));
  if (end && !first && pass_whole(call, team.member(before).channel, bytes, link)) return;
  shm::Reader reader;
  const auto read_piece = [&] {
    shm::InQueue& queue = team.member(before).channel;
    if (!reader.poll(call, queue)) return false;
    if (!reader.failed() && reader.message_bytes() != bytes)
      call.report_mismatch({before, call.tag(), reader.message_bytes(), bytes});
    if (call.status() != Status::ok) return true;
    const std::size_t piece = reader.bytes();
    link.pass(reader.data(), piece);
    if (piece != 0) reader.take(queue, piece);
    return true;
  };
  run_together(
      call,
      [&] {
        bool moved = !first && !reader.done() && read_piece();
        out.allow(first ? bytes : link.ready());
        if (!out.done() && out.step(call, team.member(after).to)) moved = true;
        if (first && !out.done()) copy.step(out.written());
        return moved;
      },
      [&] { return (first || reader.done()) && out.done(); },
      [&](int peer) {
        return peer == before ? misses(reader, team.member(before).channel) : peer == after && !out.done();
      });
  copy.finish();
}

// ---- Which way
// -------------------------------------------------------------------------------------------------------

inline bool is_short(std::uint64_t bytes) { return bytes <= kTuning.flat_reduce_bytes; }

inline void go(shm::Call& call, DataPath path) { call.go(static_cast<unsigned>(path)); }

template <class Parts>
void allreduce_parts(shm::Call& call, const Parts& parts) {
  if (!parts.good()) return call.fail(Status::invalid);
  if (is_short(parts.bytes())) return allreduce_flat(call, parts);
  go(call, DataPath::slices);
  allreduce_slices(call, parts);
}

template <class Parts>
void reduce_parts(shm::Call& call, const Parts& parts, int root) {
  if (!parts.good()) return call.fail(Status::invalid);
  if (is_short(parts.bytes()) || call.team().size() < parts.least_ranks_to_split()) {
    return reduce_at_root(call, parts, root);
  }
  go(call, DataPath::slices);
  reduce_slices(call, parts, root);
}

template <class Parts>
void scan_parts(shm::Call& call, const Parts& parts, bool exclusive) {
  if (!parts.good()) return call.fail(Status::invalid);
  // Two ranks are a chain of one message.
  if (is_short(parts.bytes()) && call.team().size() != 2) return scan_flat(call, parts, exclusive);
  go(call, DataPath::chain);
  scan_chain(call, parts, exclusive);
}

}  // namespace stretto::coll_shm
