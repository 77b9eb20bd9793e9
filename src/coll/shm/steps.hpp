// SPDX-License-Identifier: BSD-3-Clause
// Drives the messages of a call: by steps that never block, in turn over peers, and a wait when
// nothing moves.
#pragma once
#include <cstring>

#include "shm/message.hpp"
#include "shm/whole.hpp"

namespace stretto::coll_shm {

// Where a rank reads what its peers send: what they publish for all, or what they send to it alone.
enum class From : bool { boards, channels };

inline shm::InQueue& queue_of(shm::Team& team, From from, int writer) {
  return from == From::boards ? team.member(writer).board : team.channel(writer);
}

// Runs `steps` until `done()`. `steps` returns whether anything moved. A call that cannot end is
// left as it is.
template <class Steps, class Done>
void run(shm::Call& call, Steps steps, Done done) {
  shm::Waiter waiter(call.team().policy());
  while (!done()) {
    if (steps()) {
      waiter.moved();
    } else if (waiter.step() && !shm::CallCheck(call).check_peers(waiter.waited_ns())) {
      return;
    }
  }
}

// Messages that do not go in one piece, step by step. A function of its own keeps this code apart
// from the fast way.
void send_in_steps(shm::Call& call, shm::OutQueue& queue, const Region& region, bool good);
void receive_in_steps(shm::Call& call, shm::InQueue& queue, const Region& region, bool good);

// Runs one message to its end: all that a rank does in a call in which it has only one. With good =
// false it sends poison, and drops what comes.
inline void send_one(shm::Call& call, shm::OutQueue& queue, const Region& region, bool good) {
  if (!good || !shm::send_whole(call, queue, region)) send_in_steps(call, queue, region, good);
}
inline void receive_one(shm::Call& call, shm::InQueue& queue, const Region& region, bool good) {
  shm::Waiter waiter(call.team().policy());
  if (!good || !shm::receive_whole(call, queue, region, waiter, true)) receive_in_steps(call, queue, region, good);
}

// Moves one of several messages that go out, or come in, at the same time, if it goes in one piece.
// Otherwise leaves it to step_outgoing or step_incoming. Returns whether it was moved.
inline bool start_sending(shm::Call& call, int peer, const Region& region, bool good) {
  shm::Team& team = call.team();
  shm::Outgoing& out = team.states()[peer].out;
  const bool whole = good && shm::send_whole(call, team.to(peer), region);
  whole ? out.skip() : out.start(good ? region : kNothing, !good);
  return whole;
}
template <bool kExactly = false>
inline bool start_receiving(shm::Call& call, From from, int peer, const Region& region, bool good,
                            shm::Waiter& waiter) {
  shm::Team& team = call.team();
  shm::Incoming& in = team.states()[peer].in;
  const bool whole = good && shm::receive_whole<kExactly>(call, queue_of(team, from, peer), region, waiter, false);
  whole ? in.skip() : in.start(good ? region : kNothing, !good);
  return whole;
}

// Calls `visit(rank)` for every other member, the right neighbour first, so that not all ranks turn
// to the same one.
template <class Visit>
[[gnu::always_inline]] inline void for_each_peer(const shm::Team& team, const Visit& visit) {
  for (int rank = team.rank() + 1; rank < team.size(); ++rank) visit(rank);
  for (int rank = 0; rank < team.rank(); ++rank) visit(rank);
}

// Both return whether all messages have been moved.
inline bool start_sending_all(shm::Call& call, const Blocks& blocks, bool good) {
  bool whole = true;
  for_each_peer(call.team(),
                [&](int peer) { whole = start_sending(call, peer, good ? blocks.at(peer) : kNothing, good) && whole; });
  return whole;
}
// Waits for short messages right away if this rank is `idle`: it has nothing to move that others
// wait for.
inline bool start_receiving_all(shm::Call& call, From from, const Blocks& blocks, bool good, bool idle) {
  shm::Team& team = call.team();
  bool whole = true;
  if (idle) {
    shm::Waiter waiter(team.policy());
    for_each_peer(team, [&](int peer) {
      whole = start_receiving(call, from, peer, good ? blocks.at(peer) : kNothing, good, waiter) && whole;
    });
    return whole;
  }
  for_each_peer(team, [&](int peer) { team.states()[peer].in.start(good ? blocks.at(peer) : kNothing, !good); });
  return false;
}

// Steps every message that is being read into memory. Returns whether one moved.
inline bool step_incoming(shm::Call& call, From from) {
  shm::Team& team = call.team();
  bool moved = false;
  for_each_peer(team, [&](int peer) {
    shm::Incoming& in = team.states()[peer].in;
    if (!in.done() && in.step(call, queue_of(team, from, peer))) moved = true;
  });
  return moved;
}

// Steps every message that goes out through a channel, a fragment each, so that all readers copy
// out at once.
inline bool step_outgoing(shm::Call& call) {
  shm::Team& team = call.team();
  bool moved = false;
  for_each_peer(team, [&](int peer) {
    shm::Outgoing& out = team.states()[peer].out;
    if (!out.done() && out.step(call, team.to(peer))) moved = true;
  });
  return moved;
}

inline bool incoming_done(const shm::Team& team) {
  for (int r = 0; r < team.size(); ++r) {
    if (r != team.rank() && !team.states()[r].in.done()) return false;
  }
  return true;
}
inline bool outgoing_done(const shm::Team& team) {
  for (int r = 0; r < team.size(); ++r) {
    if (r != team.rank() && !team.states()[r].out.done()) return false;
  }
  return true;
}

// A copy of a rank's own block, made piece by piece while others are moved. It copies what is being
// sent, while that is in cache, or it copies while peers fill their slots. Data that do not lie in
// one piece are copied as a whole.
class OverlappedCopy {
 public:
  OverlappedCopy() = default;
  // `past`: past the caches.
  OverlappedCopy(const Region& to, const Region& from, bool past)
      : to_(to),
        from_(from),
        total_(from.bytes()),
        source_(to.bytes() == total_ ? from.flat() : nullptr),
        target_(source_ != nullptr ? to.flat() : nullptr),
        past_(past) {}
  [[nodiscard]] std::uint64_t bytes() const { return total_; }
  [[nodiscard]] bool done() const { return copied_ == total_; }
  // So many bytes have been sent.
  void step(std::uint64_t sent) {
    if (sent <= copied_ || (sent != total_ && !flat())) return;  // less: it is being sent again
    if (!flat()) {
      region_copy(to_, from_);
    } else if (past_) {
      copy_past_to_any(target_ + copied_, source_ + copied_, sent - copied_);
    } else {
      std::memcpy(target_ + copied_, source_ + copied_, sent - copied_);
    }
    copied_ = sent;
  }
  void finish() { step(total_); }
  // Copies the next `bytes` bytes. Data that do not lie in one piece are copied as a whole. Returns
  // whether there was anything to copy.
  bool advance(std::uint64_t bytes) {
    if (done()) return false;
    step(flat() && total_ - copied_ > bytes ? copied_ + bytes : total_);
    return true;
  }

 private:
  [[nodiscard]] bool flat() const { return target_ != nullptr; }

  Region to_;
  Region from_;
  std::uint64_t total_ = 0;
  std::uint64_t copied_ = 0;
  const char* source_ = nullptr;
  char* target_ = nullptr;  // null: the data do not lie in one piece
  bool past_ = false;
};

// A rank's block for itself. A block that does not fit is this rank's error.
inline OverlappedCopy own_block(shm::Call& call, const Region& to, const Region& from) {
  if (from.bytes() > to.bytes()) call.fail(Status::truncated);
  return {to, from, call.team().stores_past(from.bytes())};
}

}  // namespace stretto::coll_shm
