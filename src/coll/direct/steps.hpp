// SPDX-License-Identifier: BSD-3-Clause
// Driving the messages of a call: steps that never block, in turn over peers, and a wait when nothing moves.
#pragma once
#include "shm/message.hpp"

namespace stretto::coll::direct {

// Where a rank reads what its peers send: what they show to all, or what they send to it alone.
enum class From : bool { boards, channels };

inline shm::InQueue& queue_of(shm::Team& team, From from, int writer) {
  shm::Member& member = team.member(writer);
  return from == From::boards ? member.board : member.channel;
}

// Runs `steps` until `done()`; it returns whether anything moved. A call that turns out to have no end is left as it is.
template <class Steps, class Done>
void run(shm::Call& call, Steps steps, Done done) {
  shm::Waiter waiter(call.team().policy());
  while (!done()) {
    if (steps()) {
      waiter.moved();
    } else if (waiter.step() && !look_around(call, waiter.waited_ns())) {
      return;
    }
  }
}

// Runs one message to its end: all that a rank does in a call in which it has only one.
inline void send_all(shm::Call& call, shm::Outgoing& message, shm::OutQueue& queue) {
  run(call, [&] { return message.step(call, queue); }, [&] { return message.done(); });
}
inline void receive_all(shm::Call& call, shm::Incoming& message, shm::InQueue& queue) {
  run(call, [&] { return message.step(call, queue); }, [&] { return message.done(); });
}

// Calls `visit(rank)` for every other member, the right neighbour first, so that not all ranks turn to the same one.
template <class Visit>
void for_each_peer(const shm::Team& team, Visit visit) {
  for (int rank = team.rank() + 1; rank < team.size(); ++rank) visit(rank);
  for (int rank = 0; rank < team.rank(); ++rank) visit(rank);
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

// Steps every message that goes out through a channel, a fragment each, so that all readers copy out at once.
inline bool step_outgoing(shm::Call& call) {
  shm::Team& team = call.team();
  bool moved = false;
  for_each_peer(team, [&](int peer) {
    shm::Outgoing& out = team.states()[peer].out;
    if (!out.done() && out.step(call, team.member(peer).to)) moved = true;
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

// A rank's block for itself; a block that does not fit is this rank's error.
inline void copy_own(shm::Call& call, const Region& to, const Region& from) {
  if (from.bytes() > to.bytes()) call.fail(Status::truncated);
  region_copy(to, from);
}

}  // namespace stretto::coll::direct
