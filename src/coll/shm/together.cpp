// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/together.hpp"

namespace stretto::coll_shm {

namespace {

// Reports a record of this call at the head of a queue that goes another way. Drops records that
// earlier calls have left before it.
void look_at_head(shm::Call& call, shm::Team& team, shm::InQueue& queue) {
  const shm::Record* record = head_of(team, queue);
  while (record && record->call >> 8 < call.number()) {
    queue.consume();
    record = head_of(team, queue);
  }
  if (record && record->call >> 8 == call.number() && record->call != call.mark())
    call.report_mismatch({team.rank_of(queue.writer), record->tag()});
}

void check_member(shm::Call& call, shm::Team& team, int peer) {
  const Status why = team.calls().given_up(peer, call.number());
  if (why != Status::ok) call.fail(why);
  if (shm::InQueue* const board = team.queues().board_if_any(peer)) look_at_head(call, team, *board);
  if (shm::InQueue* const channel = team.queues().channel_if_any(peer)) look_at_head(call, team, *channel);
}

}  // namespace

void check_peer(shm::Call& call, int peer) { check_member(call, call.team(), peer); }

void check_other_teams(shm::Call& call) {
  for (shm::Team* team = &call.whole(); team != nullptr; team = team->next_tier()) {
    if (team == &call.team()) continue;
    for_each_peer(*team, [&](int peer) { check_member(call, *team, peer); });
  }
}

void send_together(shm::Call& call, shm::OutQueue& queue, const Region& region) {
  if (shm::send_whole(call, queue, region)) return;
  shm::Outgoing out;
  out.start(region, false);
  run_together(
      call, [&] { return out.step(call, queue); }, [&] { return out.done(); },
      [&](int peer) { return queue.reader == shm::OutQueue::kEverybody || queue.reader == peer; });
}

void receive_together(shm::Call& call, shm::InQueue& queue, const Region& region) {
  shm::Waiter waiter(call.team().policy());
  const bool whole = call.lengths_expected() ? shm::receive_whole<true>(call, queue, region, waiter, false)
                                             : shm::receive_whole(call, queue, region, waiter, false);
  if (whole) return;
  shm::Incoming in;
  in.start(region, false);
  run_together(
      call, [&] { return in.step(call, queue); }, [&] { return in.done(); },
      [&](int peer) { return peer == queue.writer && misses(in, queue); });
}

void gather_nothing(shm::Call& call, From from) {
  shm::Team& team = call.team();
  bool all = true;
  shm::Waiter waiter(team.policy());
  for_each_peer(team, [&](int peer) { all = start_receiving(call, from, peer, kNothing, true, waiter) && all; });
  if (all) return;
  run_together(
      call, [&] { return step_incoming(call, from); }, [&] { return incoming_done(team); },
      [&](int peer) { return misses(team.states()[peer].in, queue_of(team, from, peer)); });
}

}  // namespace stretto::coll_shm
