// SPDX-License-Identifier: BSD-3-Clause
// How a team's queues get memory: at their first use, and for longer rings (lines.hpp).
#include "shm/queues.hpp"

#include <cstdlib>
#include <utility>

#include "shm/lane.hpp"
#include "shm/team.hpp"

namespace stretto::shm {

namespace {

// As Moved::ring.
std::uint64_t ring_word(std::uint64_t offset, unsigned records) {
  return offset << 8 | static_cast<unsigned>(std::countr_zero(records));
}

// Clears the sequences of a ring that no peer may look at yet.
Record* clear_ring(char* at, unsigned count) {
  auto* const records = reinterpret_cast<Record*>(at);
  for (unsigned i = 0; i < count; ++i) records[i].sequence.store_relaxed(0);
  return records;
}

}  // namespace

bool Team::make_room() {
  bool moved = false;
  for (Team* team = this; team != nullptr; team = team->next_tier_) moved = team->make_room_itself() || moved;
  return moved;
}

bool Team::make_room_itself() {
  bool moved = make_room(board_);
  for (int r = 0; r < size_; ++r) {
    const Member* const m = known_member(r);
    moved = (m != nullptr && m->channels != nullptr && make_room(m->channels->to)) || moved;
  }
  return moved;
}

// Moves a queue to a ring that also has a place for all that is not read yet.
bool Team::make_room(OutQueue& queue) {
  const unsigned records = std::exchange(queue.wanted, 0);
  if (queue.records == 0 || records <= queue.records || memory_.allocate == nullptr) return false;
  if (queue.written - refresh(queue) < queue.records) return false;
  if (queue.moved_at != 0 && queue.acked <= queue.moved_at) return false;
  const std::size_t bytes = records * sizeof(Record);
  const std::uint64_t offset = memory_.allocate(memory_.context, bytes);
  if (offset == 0) return false;
  if (!rings_.push({offset, bytes})) std::abort();  // a few words
  Record* const ring = clear_ring(memory_.segment + offset, records);
  const bool board = queue.reader == OutQueue::kEverybody;
  Moved& moved = board ? directory_->board_moved : member(queue.reader).own->channel_moved;
  moved.ring.store_release(ring_word(offset, records));
  moved.at.store_release(queue.written + 1);  // pairs with follow
  queue.ring = ring;
  queue.records = records;
  queue.moved_at = queue.written;
  return true;
}

bool Team::has_room(OutQueue& queue) {
  if (queue.records == 0 && !open(queue)) return false;
  return queue.written - refresh(queue) < queue.records;
}

// Makes a ring at its first use: see lines.hpp.
bool Team::open(OutQueue& queue) {
  const bool board = queue.reader == OutQueue::kEverybody;
  Ack* const line = board ? nullptr : own_line(member(queue.reader));
  const std::uint64_t offset = board || line != nullptr ? whole().space_.take_ring(records_ * sizeof(Record)) : 0;
  if (offset == 0) {
    note_no_memory();
    return false;
  }
  queue.ring = clear_ring(lanes_->segment() + offset, records_);
  queue.records = records_;
  (board ? directory_->board_ring : line->channel_ring).store_release(ring_word(offset, records_));  // InQueue::open
  return true;
}

bool InQueue::open() {
  if (ring != &kUnwritten) return false;
  Team& team = *from->team;
  const bool board = this == &from->board;
  const std::uint64_t word = board ? team.board_ring(writer) : team.channel_ring(writer);
  if (word == 0) return false;
  Ack* const line = team.own_line(*from);
  if (line == nullptr) {
    team.note_no_memory();
    return false;
  }
  ack = board ? &line->board : &line->channel;
  ring = reinterpret_cast<const Record*>(from->segment + (word >> 8));
  records = 1u << (word & 0xff);
  return true;
}

const Moved* Team::moved(const InQueue& queue) const {
  if (&queue == &queue.from->board) return &directory(queue.writer).board_moved;
  const Ack* const line = line_of(queue.writer);
  return line == nullptr ? nullptr : &line->channel_moved;
}

bool Team::follow() {
  bool followed = false;
  for (Team* team = this; team != nullptr; team = team->next_tier_) followed = team->follow_itself() || followed;
  return followed;
}

bool Team::follow_itself() {
  bool followed = false;
  for (int r = 0; r < size_; ++r) {
    Member* const m = known_member(r);
    if (m == nullptr) continue;
    followed = follow(m->board) || followed;
    if (m->channels != nullptr) followed = follow(m->channels->from) || followed;
  }
  return followed;
}

bool Team::follow(InQueue& queue) {
  const Moved* const moved = queue.ack == nullptr ? nullptr : this->moved(queue);
  if (moved == nullptr || moved->at.load_acquire() != queue.read + 1) return false;  // pairs with make_room
  const std::uint64_t ring = moved->ring.load_acquire();
  const auto* const place = reinterpret_cast<const Record*>(queue.from->segment + (ring >> 8));
  // Asked last: the line may be another communicator's by now, and say anything.
  if (place == queue.ring || !peer(queue.writer).is_here()) return false;
  queue.ring = place;
  queue.records = 1u << (ring & 0xff);
  return true;
}

}  // namespace stretto::shm
