// SPDX-License-Identifier: BSD-3-Clause
// Calls in which every rank needs every other, and all must give the same counts: reductions. A
// rank that cannot go on returns, which gives the call up (shm/lines.hpp). A rank that waits for
// it, or for one that waits for it, looks at its peers and does the same.
//
// No rank waits for ever. A rank that waits misses something of a peer: a record, or room for one.
// There are four cases. The peer is late. Or it waits itself. Or it gave up, which this rank sees.
// Or it left without doing its part, which this rank sees as well.
//
// Ranks that wait for each other are on different ways; on one way none would wait. They see
// records of another way at the head of a queue, perhaps of another one than they wait at. So a
// rank that waits in a tier looks at all queues of the communicator, and one that waits there looks
// at the queues of its tiers.
#pragma once
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

// Looks at what a member of call.team() has said about this call, or shows where this call's data
// belong. Fails the call if it is no use to wait.
void check_peer(shm::Call& call, int peer);
// The same for the members of the communicator's other teams.
void check_other_teams(shm::Call& call);

// Nothing of this message is at hand, and nothing will be if its writer has left.
inline bool misses(const shm::Reader& reader, shm::InQueue& queue) {
  return !reader.done() && reader.bytes() == 0 && queue.peek() == nullptr;
}
inline bool misses(const shm::Incoming& message, shm::InQueue& queue) {
  return !message.done() && queue.peek() == nullptr;
}

// Runs `steps` until `done()`, or until the call has failed. `needs(peer)`: this rank misses
// something of that peer, or has something for it that the peer must get before this rank returns.
template <class Steps, class Done, class Needs>
void run_together(shm::Call& call, Steps steps, Done done, Needs needs) {
  shm::Team& team = call.team();
  shm::Waiter waiter(team.policy());
  while (!done() && call.status() == Status::ok) {
    if (steps()) {
      waiter.moved();
    } else if (waiter.step()) [[unlikely]] {
      (void)shm::CallCheck(call).check_peers(waiter.waited_ns());  // first: it can say more
      check_other_teams(call);
      for_each_peer(team, [&](int peer) {
        // First this, then what it left behind.
        const bool left = team.calls().has_left(peer, call.number());
        check_peer(call, peer);
        if (left && needs(peer)) shm::CallCheck(call).fail_because_of(team.rank_of(peer));
      });
    }
  }
}

// The same, or run() where no peer gives a call up or goes another way.
template <bool kTogether, class Steps, class Done, class Needs>
void run_either(shm::Call& call, Steps steps, Done done, Needs needs) {
  if constexpr (kTogether)
    run_together(call, steps, done, needs);
  else
    run(call, steps, done);
}

// One message among the members of call.team(), whose other end may give the call up.
void send_together(shm::Call& call, shm::OutQueue& queue, const Region& region);
void receive_together(shm::Call& call, shm::InQueue& queue, const Region& region);
// Waits until all other members of call.team() have sent nothing: to this one, or to all.
void gather_nothing(shm::Call& call, From from);

}  // namespace stretto::coll_shm
