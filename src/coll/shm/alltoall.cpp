// SPDX-License-Identifier: BSD-3-Clause
// Alltoall, Alltoallv, Alltoallw: every rank has a channel to every other. Each rank deals its
// blocks round-robin, starting with its right neighbour, and drains all channels at the same time.
// So no two ranks wait for each other's slots. In each turn a rank also copies a piece of its own
// block.
//
// In place, a block that comes in goes where a block that goes out came from. So the rank first
// packs its blocks aside. The other way would hold readers back until their own blocks have left.
// That deadlocks once there are more ranks than slots.
#include <cstdlib>

#include "coll/shm/collectives.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

// Starts sending from a packed copy of `blocks`. Returns the copy; null: no memory.
char* start_aside(shm::Team& team, const Blocks& blocks) {
  std::uint64_t total = 0;
  for (int r = 0; r < team.size(); ++r) total += blocks.at(r).bytes();
  auto* const copy = static_cast<char*>(std::malloc(total == 0 ? 1 : total));
  char* next = copy;
  for (int r = 0; r < team.size() && copy; ++r) {
    const Region block = blocks.at(r);
    if (r == team.rank()) continue;
    const Region packed{next, block.bytes(), &kPlainByte};
    region_copy(packed, block);
    team.states()[r].out.start(packed, false);
    next += packed.count;
  }
  return copy;
}

template <bool kTogether>
void go_by_channels(shm::Call& call, const Blocks& send, const Blocks& receive, bool in_place, bool good) {
  shm::Team& team = call.team();
  char* aside = nullptr;
  if (in_place && good) {
    aside = start_aside(team, receive);
    if (!aside) call.fail(Status::no_memory);
  }
  const bool sound = good && (!in_place || aside);
  const bool sent = !aside && start_sending_all(call, send, sound);
  if (!sent) (void)step_outgoing(call);  // peers start on our first fragments
  OverlappedCopy copy =
      sound && !in_place ? own_block(call, receive.at(team.rank()), send.at(team.rank())) : OverlappedCopy();
  const std::size_t piece = call.fragment_bytes(copy.bytes());
  copy.advance(piece);
  if (start_receiving_all(call, From::channels, receive, sound, copy.done() && (sent || outgoing_done(team))) && sent)
    return;
  run_either<kTogether>(
      call,
      [&] {
        bool moved = step_outgoing(call);
        moved = copy.advance(piece) || moved;
        return step_incoming(call, From::channels) || moved;
      },
      [&] { return copy.done() && outgoing_done(team) && incoming_done(team); },
      [&](int peer) { return !team.states()[peer].out.done() || misses(team.states()[peer].in, team.channel(peer)); });
  std::free(aside);
}

}  // namespace

void alltoall_channels(shm::Call& call, const Blocks& send, const Blocks& receive, bool in_place, bool good,
                       bool together) {
  together ? go_by_channels<true>(call, send, receive, in_place, good)
           : go_by_channels<false>(call, send, receive, in_place, good);
}

}  // namespace stretto::coll_shm
