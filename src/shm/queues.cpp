// SPDX-License-Identifier: BSD-3-Clause
#include "shm/queues.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "sys/sys.hpp"

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

Channels& Queues::make_channels(Member& member) const {
  void* const memory = std::malloc(sizeof(Channels));
  if (memory == nullptr) std::abort();  // a few words
  auto* const channels = new (memory) Channels;
  channels->to.reader = member.board.writer;
  channels->to.measure_at = measure_from_;
  channels->from = {&kUnwritten, 1, member.board.writer, nullptr, 0, &member};
  member.channels = channels;
  return *channels;
}

void Queues::far_from(std::uint64_t ns) {
  far_ns_ = ns;
  measure_from_ = ns == 0 || ns == Tuning::kNever || members_.size() < 2 ? Tuning::kNever : 0;
  board_.measure_at = measure_from_;
  for (int r = 0; r < members_.size(); ++r) {
    const Member* const m = members_.known_member(r);
    if (m != nullptr && m->channels != nullptr) m->channels->to.measure_at = measure_from_;
  }
}

// If the reader has not written a line since we looked last, the line comes out of our own cache.
// Readers of the board take turns.
void Queues::measure(OutQueue& queue) {
  const bool board = queue.reader == OutQueue::kEverybody;
  if (board) {
    measured_ = (measured_ + 1) % members_.size();
    if (measured_ == members_.rank()) measured_ = (measured_ + 1) % members_.size();
  }
  const int rank = board ? measured_ : queue.reader;
  const Ack* const line = members_.line_of(rank);
  if (line == nullptr) return;
  Member& reader = members_.member(rank);
  const Atomic<std::uint64_t>& count = board ? line->board : line->channel;
  const std::uint64_t before = sys::now_ns();
  const std::uint64_t begin = sys::now_ns();
  // No later load, of this line or further down, goes ahead of the clock.
  sys::hold_back();
  const std::uint64_t now = count.load_acquire();
  const std::uint64_t took = sys::now_ns() - begin, clock = begin - before;
  if (now == (board ? reader.heard : queue.acked)) return;
  queue.measure_at = queue.written + kTuning.measured_every;
  const int was = reader.distance.is_far() ? 1 : 0;
  reader.distance.took(took > clock ? took - clock : 0, far_ns_);
  far_members_ += (reader.distance.is_far() ? 1 : 0) - was;
}

std::uint64_t Queues::hear(const OutQueue& queue) {
  if (queue.reader != OutQueue::kEverybody) return members_.acked_by(queue.reader, false);
  std::uint64_t least = ~std::uint64_t{0};
  for (int r = 0; r < members_.size(); ++r) {
    if (r == members_.rank()) continue;
    Member& m = members_.member(r);
    m.heard = members_.acked_by(r, true);
    if (m.heard < least) least = m.heard;
  }
  return least;
}

bool Queues::make_room() {
  bool moved = false;
  (void)each_written([&](OutQueue& queue) {
    moved = make_room(queue) || moved;
    return true;
  });
  return moved;
}

// Moves a queue to a ring that also has a place for all that is not read yet.
bool Queues::make_room(OutQueue& queue) {
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
  Moved& moved = board ? members_.own_directory().board_moved : members_.member(queue.reader).own->channel_moved;
  moved.ring.store_release(ring_word(offset, records));
  moved.at.store_release(queue.written + 1);  // pairs with follow
  queue.ring = ring;
  queue.records = records;
  queue.moved_at = queue.written;
  return true;
}

bool Queues::has_room(OutQueue& queue) {
  if (queue.records == 0 && !open(queue)) return false;
  return queue.written - refresh(queue) < queue.records;
}

// Makes a ring at its first use: see lines.hpp.
bool Queues::open(OutQueue& queue) {
  const bool board = queue.reader == OutQueue::kEverybody;
  Ack* const line = board ? nullptr : members_.own_line(members_.member(queue.reader));
  const std::uint64_t offset = board || line != nullptr ? members_.take_ring(records_ * sizeof(Record)) : 0;
  if (offset == 0) {
    members_.note_no_memory();
    return false;
  }
  queue.ring = clear_ring(members_.at(offset), records_);
  queue.records = records_;
  (board ? members_.own_directory().board_ring : line->channel_ring)
      .store_release(ring_word(offset, records_));  // InQueue::open
  return true;
}

const Moved* Queues::moved(const InQueue& queue) const {
  if (&queue == &queue.from->board) return &members_.directory(queue.writer).board_moved;
  const Ack* const line = members_.line_of(queue.writer);
  return line == nullptr ? nullptr : &line->channel_moved;
}

bool Queues::follow() {
  bool followed = false;
  for (int r = 0; r < members_.size(); ++r) {
    Member* const m = members_.known_member(r);
    if (m == nullptr) continue;
    followed = follow(m->board) || followed;
    if (m->channels != nullptr) followed = follow(m->channels->from) || followed;
  }
  return followed;
}

bool Queues::follow(InQueue& queue) {
  const Moved* const moved = queue.ack == nullptr ? nullptr : this->moved(queue);
  if (moved == nullptr || moved->at.load_acquire() != queue.read + 1) return false;  // pairs with make_room
  const std::uint64_t ring = moved->ring.load_acquire();
  const auto* const place = reinterpret_cast<const Record*>(queue.from->segment + (ring >> 8));
  // Asked last: the line may be another communicator's by now, and say anything.
  if (place == queue.ring || !members_.peer(queue.writer).is_here()) return false;
  queue.ring = place;
  queue.records = 1u << (ring & 0xff);
  return true;
}

}  // namespace stretto::shm
