// SPDX-License-Identifier: BSD-3-Clause
// Which earlier steps a step must follow because their slices overlap. What the step reads must
// have been written. What it overwrites must have been written and read. A buffer consists of cells
// in the order of their offsets. Each cell has its last writer and the steps that have read it
// since.
//
// The cells are a list and a splay tree (Sleator, Tarjan 1985). A step costs the cells that it
// touches, and O(log cells), amortised, to find the first one. Algorithms go through a buffer
// forwards, backwards or at a few places by turns. The cells that were touched last are then near
// the root, and finding one takes a constant number of comparisons.
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::sched {

class Hazards {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void clear() {
    cells_.clear();
    readers_.clear();
    root_ = free_ = kNone;
  }
  [[nodiscard]] bool failed() const { return cells_.failed() || readers_.failed(); }
  // Cells and readers visited since the beginning.
  [[nodiscard]] std::uint64_t work() const { return work_; }

  // Notes that `step` reads (or writes) [begin, end). Calls `follow` for every step that it must
  // follow, perhaps more than once.
  template <class Follow>
  void read(std::uint32_t step, std::uint64_t begin, std::uint64_t end, Follow follow) {
    if (begin == end) return;
    const Span span = isolate(begin, end);
    for (std::uint32_t i = span.first; i != span.stop; i = cells_[i].next) {
      Cell& cell = cells_[i];
      ++work_;
      if (cell.writer != kNone) follow(cell.writer);
      readers_.push({step, cell.readers});
      cell.readers = static_cast<std::uint32_t>(readers_.size()) - 1;
    }
  }
  template <class Follow>
  void write(std::uint32_t step, std::uint64_t begin, std::uint64_t end, Follow follow) {
    if (begin == end) return;
    const Span span = isolate(begin, end);
    if (failed()) return;
    for (std::uint32_t i = span.first; i != span.stop; i = cells_[i].next) {
      const Cell& cell = cells_[i];
      ++work_;
      for (std::uint32_t r = cell.readers; r != kNone; r = readers_[r].next) {
        ++work_;
        if (readers_[r].step != step) follow(readers_[r].step);
      }
      // The readers have followed the writer already, so following them is enough.
      if (cell.readers == kNone || only_reader(cell, step)) {
        if (cell.writer != kNone) follow(cell.writer);
      }
    }
    merge(span);
    cells_[span.first].end = end;
    cells_[span.first].writer = step;
    cells_[span.first].readers = kNone;
  }

 private:
  struct Cell {
    std::uint64_t begin, end;
    std::uint32_t writer;
    std::uint32_t readers;       // head of a list in readers_
    std::uint32_t before, next;  // neighbours in the order of offsets
    std::uint32_t left, right;   // in the tree
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t next;
  };
  // The cells from `first` up to, but without, `stop`.
  struct Span {
    std::uint32_t first, stop;
  };

  [[nodiscard]] bool only_reader(const Cell& cell, std::uint32_t step) const {
    return readers_[cell.readers].step == step && readers_[cell.readers].next == kNone;
  }
  // Returns the root of the same tree. At its top is the cell that holds `at`, or else a neighbour
  // of where that cell would be.
  std::uint32_t splay(std::uint32_t root, std::uint64_t at);
  // Makes cell borders at both ends, and cells where there are none. The span's cells are then
  // exactly [begin, end).
  Span isolate(std::uint64_t begin, std::uint64_t end);
  // The first cell that ends after `begin`, cut there if it begins before. kNone: there is none.
  std::uint32_t first_after(std::uint64_t begin);
  // Inserts a cell beside the root; it becomes the new root. kNone: no memory.
  std::uint32_t insert(const Cell& cell, bool behind_root);
  // Cuts the cell in two; returns the upper one. kNone: no memory.
  std::uint32_t cut(std::uint32_t cell, std::uint64_t at);
  // Removes all cells of the span but the first.
  void merge(const Span& span);

  Array<Cell> cells_;
  Array<Reader> readers_;
  std::uint32_t root_ = kNone;
  std::uint32_t free_ = kNone;  // removed cells, by `next`
  std::uint64_t work_ = 0;
};

}  // namespace stretto::sched
