// SPDX-License-Identifier: BSD-3-Clause
// Allgather and Allgatherv (paper S1, section 2.4). There is no root. A rank writes each fragment
// of its block once, to its board, and drains the boards of all others, whichever has something
// first. Both go on together. So no rank waits with a full lane for a peer that waits with a full
// lane for it.
#include "coll/shm/collectives.hpp"
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

template <bool kTogether>
void go_by_boards(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good) {
  shm::Team& team = call.team();
  const Region source = !in_place ? send : good ? receive.at(team.rank()) : kNothing;
  shm::Outgoing mine;
  const bool sent = good && shm::send_whole(call, team.board(), source);
  if (!sent) {
    mine.start(good ? source : kNothing, !good);
    mine.step(call, team.board());  // peers start on our first fragment
  }
  OverlappedCopy copy = good && !in_place ? own_block(call, receive.at(team.rank()), send) : OverlappedCopy();
  if (sent) copy.finish();
  if (start_receiving_all(call, From::boards, receive, good, mine.done()) && sent) return;
  run_either<kTogether>(
      call,
      [&] {
        bool moved = false;
        if (!mine.done()) {
          moved = mine.step(call, team.board());
          copy.step(mine.written());
        }
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return mine.done() && incoming_done(team); },
      [&](int peer) { return !mine.done() || misses(team.states()[peer].in, team.member(peer).board); });
  copy.finish();
}

}  // namespace

void allgather_boards(shm::Call& call, const Region& send, const Blocks& receive, bool in_place, bool good,
                      bool together) {
  together ? go_by_boards<true>(call, send, receive, in_place, good)
           : go_by_boards<false>(call, send, receive, in_place, good);
}

}  // namespace stretto::coll_shm
