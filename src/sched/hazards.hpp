// SPDX-License-Identifier: BSD-3-Clause
// Which earlier steps a step must follow because their slices overlap: what it reads must have been written, and what it
// overwrites must have been written and read. One buffer as a sorted array of cells, each with its last writer and the
// steps that have read it since. A step costs O(log cells) and the cells it touches.
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
  }
  [[nodiscard]] bool failed() const { return cells_.failed() || readers_.failed(); }

  // Step `step` reads (writes) [begin, end); `follow` is called for every step it must follow, perhaps more than once.
  template <class Follow>
  void read(std::uint32_t step, std::uint64_t begin, std::uint64_t end, Follow follow) {
    if (begin == end) return;
    const Span span = isolate(begin, end);
    for (std::size_t i = span.first; i < span.last; ++i) {
      Cell& cell = cells_[i];
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
    for (std::size_t i = span.first; i < span.last; ++i) {
      const Cell& cell = cells_[i];
      for (std::uint32_t r = cell.readers; r != kNone; r = readers_[r].next) {
        if (readers_[r].step != step) follow(readers_[r].step);
      }
      // Readers have followed the writer already.
      if (cell.readers == kNone || only_reader(cell, step)) {
        if (cell.writer != kNone) follow(cell.writer);
      }
    }
    cells_[span.first] = {begin, end, step, kNone};
    cells_.splice(span.first + 1, span.last - span.first - 1, 0);
  }

 private:
  struct Cell {
    std::uint64_t begin, end;
    std::uint32_t writer;
    std::uint32_t readers;  // head of a list in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t next;
  };
  struct Span {
    std::size_t first, last;
  };

  [[nodiscard]] bool only_reader(const Cell& cell, std::uint32_t step) const {
    return readers_[cell.readers].step == step && readers_[cell.readers].next == kNone;
  }
  // Index of the first cell that ends after `at`.
  [[nodiscard]] std::size_t find(std::uint64_t at) const;
  // Makes cell borders at both ends and cells for what has none, so that cells [first, last) are exactly [begin, end).
  Span isolate(std::uint64_t begin, std::uint64_t end);
  void split(std::uint64_t at);

  Array<Cell> cells_;
  Array<Reader> readers_;
};

}  // namespace stretto::sched
