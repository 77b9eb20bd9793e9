// SPDX-License-Identifier: BSD-3-Clause
// The two ends of a queue as this rank sees them (protocol: lines.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/tuning.hpp"
#include "shm/lines.hpp"

namespace stretto::shm {

struct Member;

// A ring of records that this rank writes: its board, or a channel to one member.
struct OutQueue {
  Record* ring = nullptr;
  unsigned records = 0;  // a power of two
  // Which readers must have read a record before it is written over.
  int reader = kEverybody;
  std::uint64_t written = 0;  // records published so far
  std::uint64_t acked = 0;    // records known to have been read by all readers
  // When so many are written, a reader's distance is measured.
  std::uint64_t measure_at = Tuning::kNever;
  // Records written when its readers were asked last. A rank that asks again finds their lines in
  // its own cache.
  std::uint64_t looked_at = 0;
  // Records that a message waits for room in, if it may have more of it (see Queues::make_room).
  unsigned wanted = 0;
  std::uint64_t moved_at = 0;  // records written when it moved last, if it has

  static constexpr int kEverybody = -1;
};

// A ring of records of a peer that this rank reads.
struct InQueue {
  const Record* ring = nullptr;
  unsigned records = 0;  // 1: the writer has not made the ring yet, and may never do so
  int writer = -1;
  Atomic<std::uint64_t>* ack = nullptr;  // null: as long as there is no ring
  std::uint64_t read = 0;                // records read so far
  Member* from = nullptr;

  [[nodiscard]] const Record* place(unsigned ahead) const { return ring + ((read + ahead) & (records - 1)); }
  // The record after `ahead` others, if it has been published.
  [[nodiscard]] const Record* peek(unsigned ahead = 0) {
    const Record* record = place(ahead);
    // Pairs with Queues::publish.
    if (record->sequence.load_acquire() == read + ahead + 1) return record;
    return records == 1 && open() ? peek(ahead) : nullptr;
  }
  // Looks for the ring. False: the writer has not made it yet, or this rank has no memory for its
  // ack line.
  bool open();
  // What a record of kind slot points at.
  [[nodiscard]] inline const char* slot(const Record* record) const;
  // For a rank that waits for the record after `ahead` others of a message in records. Its second
  // line and the next records come while its first line does. The writer takes a line back that it
  // has not finished. That costs less than a miss after the wait. The number of lines is always the
  // same: a loop that counted a message's own lines was slower than lines too many.
  void fetch(unsigned ahead) const {
    __builtin_prefetch(reinterpret_cast<const char*>(place(ahead)) + sizeof(Record) / 2);
#pragma GCC unroll 8
    for (unsigned more = 1; more < kTuning.inline_records; ++more) {
      const char* const lines = reinterpret_cast<const char*>(place(ahead + more));
      __builtin_prefetch(lines);
      __builtin_prefetch(lines + sizeof(Record) / 2);
    }
  }
  // Pairs with Members::acked_by.
  void consume(unsigned count = 1) { ack->store_release(read += count); }
};

// Where queues are read that their writers have not made.
inline constinit const Record kUnwritten{};

// The channels to a member and from it, as this rank sees them. It has them once it uses one.
struct Channels {
  OutQueue to;  // it has no records until we write to it
  InQueue from;
};

}  // namespace stretto::shm
