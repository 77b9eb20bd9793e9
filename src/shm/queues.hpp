// SPDX-License-Identifier: BSD-3-Clause
// The queues that this rank shares with the members of a team: its board and its channels, and the
// ends of theirs that it reads (protocol: lines.hpp). They get memory at their first use, and
// longer rings for a rank that waits long. This class also knows which readers are far.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "shm/members.hpp"
#include "shm/queue.hpp"

namespace stretto::shm {

class Queues {
 public:
  explicit Queues(Members& members) : members_(members) { board_.reader = OutQueue::kEverybody; }
  // How many records each queue has when it is made.
  void open(const BlockLayout& layout) { records_ = layout.records(); }
  // Queues that move go to blocks of this memory.
  void move_to(const RingMemory& memory) { memory_ = memory; }
  // As those of the communicator whose tier this is.
  void settle_as(const Queues& whole) {
    memory_ = whole.memory_;
    far_from(whole.far_ns_);
  }

  [[nodiscard]] OutQueue& board() { return board_; }
  [[nodiscard]] Channels& channels(Member& member) const {
    return member.channels != nullptr ? *member.channels : make_channels(member);
  }
  // Null: nothing has come on that member's board.
  [[nodiscard]] InQueue* board_if_any(int rank) const {
    const bool any = members_.known_member(rank) != nullptr || members_.directory(rank).board_ring.load_acquire() != 0;
    return any ? &members_.member(rank).board : nullptr;
  }
  // Null: nothing has come through the channel from that member.
  [[nodiscard]] InQueue* channel_if_any(int rank) const {
    const bool any = channels_if_any(rank) != nullptr || members_.channel_ring(rank) != 0;
    return any ? &channels(members_.member(rank)).from : nullptr;
  }

  // The record to fill next. Null: readers have not left it, or there is no memory for the queue,
  // which then has no records.
  Record* claim(OutQueue& queue) {
    if (queue.written - queue.acked >= queue.records && !has_room(queue)) return nullptr;
    return queue.ring + (queue.written & (queue.records - 1));
  }
  static void publish(OutQueue& queue, Record* record) { record->sequence.store_release(++queue.written); }
  // Asks the readers of one of our queues how far they are.
  std::uint64_t refresh(OutQueue& queue) {
    if (queue.written >= queue.measure_at && queue.written != queue.looked_at) measure(queue);
    queue.looked_at = queue.written;
    const std::uint64_t now = hear(queue);
    return queue.acked = now < queue.written ? now : queue.written;
  }
  // Calls visit(queue) for each queue that this rank has written to, until one call returns false.
  template <class Visit>
  bool each_written(const Visit& visit) {
    if (!visit(board_)) return false;
    for (int r = 0; r < members_.size(); ++r) {
      Channels* const channels = r == members_.rank() ? nullptr : channels_if_any(r);
      if (channels != nullptr && !visit(channels->to)) return false;
    }
    return true;
  }

  // Whether slots for this queue are written past the caches: at least half of its readers are far.
  void far_from(std::uint64_t ns);
  [[nodiscard]] bool is_far(const OutQueue& queue) const {
    if (far_ns_ == 0) return true;
    return queue.reader == OutQueue::kEverybody ? far_members_ != 0 && 2 * far_members_ >= members_.size() - 1
                                                : members_.member(queue.reader).distance.is_far();
  }

  // For a rank that has waited long. Moves full queues to longer rings. True: something has
  // changed.
  bool make_room();
  // Reads on in the new rings of peers' queues that have moved. True: something has changed.
  bool follow();
  bool follow(InQueue& queue);
  // Calls visit(offset, bytes) for each block that queues have moved to.
  template <class Visit>
  void each_ring(const Visit& visit) const {
    for (const Ring& ring : rings_) visit(ring.offset, ring.bytes);
  }

 private:
  struct Ring {
    std::uint64_t offset;
    std::size_t bytes;
  };

  Channels& make_channels(Member& member) const;
  [[nodiscard]] Channels* channels_if_any(int rank) const {
    const Member* const m = members_.known_member(rank);
    return m == nullptr ? nullptr : m->channels;
  }
  bool has_room(OutQueue& queue);
  bool open(OutQueue& queue);
  bool make_room(OutQueue& queue);
  [[nodiscard]] const Moved* moved(const InQueue& queue) const;
  std::uint64_t hear(const OutQueue& queue);  // records that all its readers have read
  void measure(OutQueue& queue);

  Members& members_;
  OutQueue board_;
  unsigned records_ = 0;  // of each queue when it is made
  RingMemory memory_;
  Array<Ring> rings_;
  std::uint64_t far_ns_ = Tuning::kNever;
  std::uint64_t measure_from_ = Tuning::kNever;  // the first OutQueue::measure_at of a queue
  int far_members_ = 0;
  int measured_ = 0;  // the member whose distance was measured last for the board
};

}  // namespace stretto::shm
