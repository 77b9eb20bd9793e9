// SPDX-License-Identifier: BSD-3-Clause
// Where this rank's rings and ack lines of one communicator lie: in its block as long as there is
// room, then in its place, which gets memory page by page. They lie in the order of their first
// use, so few pages have memory. Nothing is given back before the communicator is freed.
//
// Rings and lines keep apart. Where a later communicator has the same block or place, a line lies
// on a line again (BlockLayout): a writer of the old one that looks there once more finds another
// generation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "shm/lines.hpp"

namespace stretto::shm {

// Memory of this process's segment for queues.
struct RingMemory {
  char* segment = nullptr;
  void* context = nullptr;
  // For a queue that moves, as an offset. 0: there is none.
  std::uint64_t (*allocate)(void* context, std::size_t bytes) = nullptr;
  // Where the communicator's rings and lines have their place, and what backs a part of it. False:
  // there is no memory.
  std::uint64_t place = 0;
  bool (*back)(void* context, std::uint64_t offset, std::size_t bytes) = nullptr;
};

class LineSpace {
 public:
  LineSpace() = default;
  // `block` is an offset in the segment.
  LineSpace(const BlockLayout& layout, std::uint64_t block)
      : lines_{block + layout.lines(), block + layout.rings()},
        rings_{block + layout.rings(), block + layout.directory()} {}
  // The communicator has a place of `layout` at memory.place.
  void go_on(const BlockLayout& layout, const RingMemory& memory) {
    memory_ = memory;
    if (memory.place == 0) return;
    lines_.more = memory.place;
    lines_.end = rings_.more = memory.place + layout.place_rings();
    rings_.end = memory.place + layout.place_bytes();
  }
  // Offsets in the segment. 0: there is no memory.
  std::uint64_t take_line() { return take(lines_, sizeof(Ack)); }
  std::uint64_t take_ring(std::size_t bytes) { return take(rings_, bytes); }

 private:
  struct Part {
    std::uint64_t next, block_end;    // in the block
    std::uint64_t more = 0, end = 0;  // in the place
  };
  std::uint64_t take(Part& part, std::size_t bytes) {
    if (part.block_end - part.next >= bytes) return std::exchange(part.next, part.next + bytes);
    if (part.end - part.more < bytes || !memory_.back(memory_.context, part.more, bytes)) return 0;
    return std::exchange(part.more, part.more + bytes);
  }

  Part lines_{}, rings_{};
  RingMemory memory_;
};

}  // namespace stretto::shm
