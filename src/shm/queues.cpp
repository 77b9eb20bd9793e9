// SPDX-License-Identifier: BSD-3-Clause
// How a team's queues get memory: channels at their first use, and longer rings (lines.hpp).
#include "shm/queues.hpp"

#include <cstdlib>
#include <utility>

#include "shm/team.hpp"

namespace stretto::shm {

bool Team::make_room() {
  bool moved = false;
  for (Team* team = this; team != nullptr; team = team->next_tier_) moved = team->make_room_itself() || moved;
  return moved;
}

bool Team::make_room_itself() {
  bool moved = make_room(board_);
  for (int r = 0; r < size_; ++r)
    moved = (members_[r].channels != nullptr && make_room(members_[r].channels->to)) || moved;
  return moved;
}

// Moves a queue to a ring that also has a place for all that is not read yet.
bool Team::make_room(OutQueue& queue) {
  const unsigned records = std::exchange(queue.wanted, 0);
  if (records <= queue.records || memory_.allocate == nullptr || queue.written - refresh(queue) < queue.records)
    return false;
  if (queue.moved_at != 0 && queue.acked <= queue.moved_at) return false;
  const std::size_t bytes = records * sizeof(Record);
  const std::uint64_t offset = memory_.allocate(memory_.context, bytes);
  if (offset == 0) return false;
  if (!rings_.push({offset, bytes})) std::abort();  // a few words
  auto* const ring = reinterpret_cast<Record*>(memory_.segment + offset);
  for (unsigned i = 0; i < records; ++i) ring[i].sequence.store_relaxed(0);
  const bool board = queue.reader == OutQueue::kEverybody;
  for (int r = board ? 0 : queue.reader; r < (board ? size_ : queue.reader + 1); ++r) {
    if (r == rank_) continue;
    Moved& moved = board ? members_[r].mine()->board_moved : members_[r].mine()->channel_moved;
    moved.ring.store_release(offset << 8 | static_cast<unsigned>(std::countr_zero(records)));
    moved.at.store_release(queue.written + 1);  // pairs with follow
  }
  queue.ring = ring;
  queue.records = records;
  queue.moved_at = queue.written;
  return true;
}

bool Team::has_room(OutQueue& queue) {
  if (queue.records == 0 && !open(queue)) return false;
  return queue.written - refresh(queue) < queue.records;
}

// Makes a channel: see lines.hpp.
bool Team::open(OutQueue& queue) {
  const BlockLayout layout{static_cast<unsigned>(size_)};
  const std::uint64_t offset = memory_.channels + layout.channel(static_cast<unsigned>(queue.reader));
  if (memory_.back == nullptr || !memory_.back(memory_.context, offset, layout.ring_bytes())) return false;
  char* const ring = memory_.segment + offset;
  clear_ring(ring, layout);
  queue.ring = reinterpret_cast<Record*>(ring);
  queue.records = layout.records();
  Ack& line = *members_[queue.reader].mine();
  line.channel_ring.store_release(offset << 8 | static_cast<unsigned>(std::countr_zero(queue.records)));
  line.channel_opened.store_release(instance_);  // pairs with InQueue::open
  return true;
}

bool InQueue::open() {
  const Ack& line = *from->ack;
  if (line.channel_opened.load_acquire() != from->instance || ring != &kUnwritten) return false;
  const std::uint64_t word = line.channel_ring.load_acquire();
  ring = reinterpret_cast<const Record*>(from->segment + (word >> 8));
  records = 1u << (word & 0xff);
  return true;
}

bool Team::follow(InQueue& queue) {
  const Member& m = members_[queue.writer];
  return follow(queue, m, &queue == &m.board ? m.ack->board_moved : m.ack->channel_moved);
}

bool Team::follow() {
  bool followed = false;
  for (Team* team = this; team != nullptr; team = team->next_tier_) followed = team->follow_itself() || followed;
  return followed;
}

bool Team::follow_itself() {
  bool followed = false;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    followed = follow(members_[r].board) || followed;
    if (members_[r].channels != nullptr) followed = follow(members_[r].channels->from) || followed;
  }
  return followed;
}

bool Team::follow(InQueue& queue, const Member& writer, const Moved& moved) {
  if (moved.at.load_acquire() != queue.read + 1) return false;  // pairs with make_room
  const std::uint64_t ring = moved.ring.load_acquire();
  const auto* const place = reinterpret_cast<const Record*>(writer.segment + (ring >> 8));
  // Asked last: the line may be another communicator's by now, and say anything.
  if (place == queue.ring || !writer.is_here()) return false;
  queue.ring = place;
  queue.records = 1u << (ring & 0xff);
  return true;
}

}  // namespace stretto::shm
