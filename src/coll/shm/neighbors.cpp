// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives: a rank sends one message through the channel to each of its
// destinations, and reads one from the channel of each source. Nobody else hears of it. A rank may
// be many calls ahead of its neighbours, as far as channels have room.
//
// A neighbour may be there several times. Then the first messages of all pairs go first, then the
// second ones. A message of a rank's turn n waits only for messages of turn n and before, on all
// ranks: so some message can always move.
//
// Cost: one message for each edge; k turns where a neighbour is there k times.
#include "coll/shm/collectives.hpp"
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

namespace {

using Turn = Neighborhood::Turn;

// The messages of one turn. Returns false if the call cannot end.
bool exchange(shm::Call& call, const Turn& turn, const SentBlocks& send, const Blocks& receive, bool good) {
  shm::MessageState* const states = call.team().states();
  bool sent = true, got = true;
  for (const auto& edge : turn.out)
    sent = start_sending(call, edge.peer, good ? send.at(edge.block) : kNothing, good) && sent;
  if (sent) {
    shm::Waiter waiter(call.team().policy());
    for (const auto& edge : turn.in) {
      const Region target = good ? receive.at(edge.block) : kNothing;
      got = start_receiving(call, From::channels, edge.peer, target, good, waiter) && got;
    }
    if (got) return true;
  } else {
    for (const auto& edge : turn.in) states[edge.peer].in.start(good ? receive.at(edge.block) : kNothing, !good);
  }
  const auto step = [&] {
    bool moved = false;
    for (const auto& edge : turn.out) {
      shm::Outgoing& out = states[edge.peer].out;
      moved = (!out.done() && out.step(call, call.team().to(edge.peer))) || moved;
    }
    for (const auto& edge : turn.in) {
      shm::Incoming& in = states[edge.peer].in;
      moved = (!in.done() && in.step(call, call.team().channel(edge.peer))) || moved;
    }
    return moved;
  };
  const auto done = [&] {
    for (const auto& edge : turn.out) {
      if (!states[edge.peer].out.done()) return false;
    }
    for (const auto& edge : turn.in) {
      if (!states[edge.peer].in.done()) return false;
    }
    return true;
  };
  run(call, step, done);
  return done();
}

}  // namespace

void neighbors(shm::Call& call, const Neighborhood& neighborhood, const SentBlocks& send, const Blocks& receive,
               bool good) {
  for (int turn = 0; turn < neighborhood.turns(); ++turn) {
    if (!exchange(call, neighborhood.turn(turn), send, receive, good)) return;
  }
  for (const Neighborhood::Own& own : neighborhood.own()) {
    if (good) own_block(call, receive.at(own.to), send.at(own.from)).finish();
  }
}

}  // namespace stretto::coll_shm
