// SPDX-License-Identifier: BSD-3-Clause
// How the blocks that a collective receives lie on pages, and which pages are complete.
//
// A *unit* is what is guarded as a whole: a page, or several. A unit that one block fills is the
// block's *own*. Threads that touch it wait for this block alone. The other bytes of a block are
// its *edges*:
//
//     block:      |------- 0 -------||---- 1 ----|     gap     |--- 2 ---|
//     units:  |   .   |   own   |  shared  | own | shared | idle | shared | own |   .   |
//             head    |<-------------------------- range --------------------->|   tail
//                     |<--- guarded run ------->|                       |<run>|
//
//   head, tail  outside the range, which reaches from the first own unit to the last
//   shared      holds several blocks, or a block and a gap
//   idle        holds no byte of a block
//
// A gap between two blocks is the program's data, and may be in use: by handlers of signals and
// other threads, or as memory of another message of the MPI. So no unit that holds a byte of a gap
// is ever guarded. The others make up *guarded runs*. The edges must be there before the call
// returns. They are asked for first.
//
// Time and memory are linear in blocks and units. Nothing is allocated after construction.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/array.hpp"

namespace stretto::overlap {

struct Block {
  std::uint64_t offset = 0;  // in the buffer
  std::uint64_t bytes = 0;
};

// Neighbouring units of the guarded range, counted from its beginning.
struct UnitRun {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool operator==(const UnitRun&) const = default;
};

// Where a block lies. It consists of edge, own units, edge.
struct BlockPlace {
  UnitRun own;
  std::uint64_t edge_before = 0;  // bytes. All of the block, if it has no unit of its own.
  std::uint64_t edge_behind = 0;
};

struct SharedUnit {
  std::uint64_t unit = 0;
  std::uint64_t awaited = 0;  // bytes of blocks in it
};

enum class LayoutError : std::uint8_t {
  none,
  no_memory,
  outside,   // a block is not in the buffer
  overlaps,  // two blocks share a byte
};

class PageLayout {
 public:
  // Blocks of 2^32 - 1 at most, in any order. `unit` is a power of two, at most 1 GiB.
  LayoutError make(const void* buffer, std::uint64_t bytes, const Block* blocks, std::size_t count, std::uint64_t unit);

  [[nodiscard]] std::uint64_t unit_bytes() const { return unit_; }
  // The guarded range. No units: there is nothing to guard.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] std::uint64_t units() const { return units_; }
  [[nodiscard]] std::uint64_t bytes() const { return units_ * unit_; }
  [[nodiscard]] std::uint64_t head_bytes() const { return offset_; }
  [[nodiscard]] std::uint64_t tail_bytes() const { return buffer_bytes_ - offset_ - bytes(); }
  [[nodiscard]] std::uint64_t edge_bytes() const { return edge_bytes_; }     // of all blocks
  [[nodiscard]] const Array<BlockPlace>& places() const { return places_; }  // as the blocks were given
  [[nodiscard]] const Array<SharedUnit>& shared() const { return shared_; }  // ascending
  [[nodiscard]] const Array<UnitRun>& idle() const { return idle_; }         // ascending
  [[nodiscard]] const Array<UnitRun>& guarded() const { return guarded_; }   // ascending
  // What of a part of one block lies in guarded runs. It may be empty.
  [[nodiscard]] Block guarded_part(const Block& part) const;

 private:
  bool sort(const Block* blocks, std::size_t count);
  LayoutError check(const Block* blocks) const;
  void place(const Block* blocks);
  void find_shared(const Block* blocks);
  void add_shared(std::uint64_t unit, std::uint64_t bytes);
  void find_guarded();
  [[nodiscard]] bool is_guarded(std::uint64_t unit) const;

  std::uint64_t buffer_bytes_ = 0, unit_ = 1, before_ = 0;  // before_: bytes of the first unit before the buffer
  std::uint64_t offset_ = 0, units_ = 0, edge_bytes_ = 0;
  Array<std::uint32_t> order_;  // blocks that are not empty, by offset
  Array<BlockPlace> places_;
  Array<SharedUnit> shared_;
  Array<UnitRun> idle_, guarded_;
};

// Which units are complete. For one thread.
class Arrival {
 public:
  Arrival() = default;
  ~Arrival();
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  // False: no memory. Four bytes a unit, of which the system gives what is used: units that no
  // piece cuts in two take none.
  bool begin(const PageLayout& layout);
  // The same for a layout of one block that has gaps. `each_piece(visit)` calls visit(offset,
  // bytes) for all that is awaited. Gaps are there.
  template <class Pieces>
  bool begin_gapped(const PageLayout& layout, const Pieces& each_piece) {
    if (!begin(layout)) return false;
    edges_left_ = bytes_left_ = 0;
    for (std::uint64_t unit = 0; unit < units_; ++unit) here_[unit] = static_cast<std::uint32_t>(unit_);
    each_piece([&](std::uint64_t offset, std::uint64_t bytes) { awaits(offset, bytes); });
    return true;
  }
  // Of a layout with gaps: nothing of this unit is awaited.
  [[nodiscard]] bool is_idle(std::uint64_t unit) const { return here_[unit] == unit_; }
  // A piece of one block is there. Returns the units that are complete by it: each is told once.
  // Each byte comes once.
  UnitRun arrived(std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] bool edges_are_here() const { return edges_left_ == 0; }
  [[nodiscard]] bool all_is_here() const { return bytes_left_ == 0; }

 private:
  bool add(std::uint64_t unit, std::uint64_t bytes);
  void awaits(std::uint64_t offset, std::uint64_t bytes);

  std::uint32_t* here_ = nullptr;  // bytes of a unit that are there, gaps among them; the top bit: shared
  std::uint64_t offset_ = 0, units_ = 0, unit_ = 1;
  std::uint64_t edges_left_ = 0, bytes_left_ = 0;
};

}  // namespace stretto::overlap
