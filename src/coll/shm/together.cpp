// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

// Reports a record of this call at the head of a queue that goes another way. Drops records that
// earlier calls have left before it.
void look_at_head(shm::Call& call, shm::InQueue& queue) {
  const shm::Record* record = head_of(call.team(), queue);
  while (record && record->call >> 8 < call.number()) {
    queue.consume();
    record = head_of(call.team(), queue);
  }
  if (record && record->call >> 8 == call.number() && record->call != call.mark())
    call.report_mismatch(queue.writer, *record);
}

}  // namespace

void check_peer(shm::Call& call, int peer) {
  shm::Team& team = call.team();
  const Status why = team.given_up(peer, call.number());
  if (why != Status::ok) call.fail(why);
  look_at_head(call, team.member(peer).board);
  look_at_head(call, team.member(peer).channel);
}

}  // namespace stretto::coll_shm
