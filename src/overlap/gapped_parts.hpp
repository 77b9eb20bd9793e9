// SPDX-License-Identifier: BSD-3-Clause
// Where the bytes of packed parts belong, in a buffer whose parts have gaps of their own.
//
// It has copies of all that says so: the program may free its datatypes and arrays of lengths when
// a call has returned.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/array.hpp"
#include "base/region.hpp"

namespace stretto::overlap {

class GappedParts {
 public:
  // `order` has the block of each part; null: as they stand. `packed` is where the parts follow
  // each other. False: no memory, or datatypes of too many pieces.
  bool start(const Blocks& blocks, int count, const int* order, char* packed) {
    packed_ = packed;
    parts_.clear();
    runs_.clear();
    const Layout* last = nullptr;
    std::uint64_t begin = 0;
    char *first = nullptr, *end = nullptr;
    for (int i = 0; i < count; ++i) {
      const Region region = blocks.at(order != nullptr ? order[i] : i);
      if (region.bytes() == 0) continue;
      if (region.layout != last) first_run_ = runs_.size();
      for (std::size_t r = 0; region.layout != last && r < region.layout->run_count; ++r)
        runs_.push(region.layout->runs[r]);
      last = region.layout;
      if (runs_.size() > kMostRuns) return false;
      parts_.push({begin, region.base, region.layout->size, region.layout->extent, first_run_, last->run_count,
                   region.flat() != nullptr});
      if (parts_.failed() || runs_.failed()) return false;
      begin += region.bytes();
      hull(region, &first, &end);
    }
    memory_ = first;
    bytes_ = static_cast<std::uint64_t>(end - first);
    return !parts_.empty();
  }
  [[nodiscard]] char* packed() const { return packed_; }
  // From the first byte of all parts to the last.
  [[nodiscard]] char* memory() const { return memory_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Calls visit(at, from, bytes) for each piece of a range of packed bytes of one part: `at` counts
  // from memory(), `from` points to the packed bytes.
  template <class Visit>
  void each_piece(std::uint64_t offset, std::uint64_t bytes, const Visit& visit) const {
    if (bytes == 0) return;
    const Part* const part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                              [](std::uint64_t at, const Part& each) { return at < each.begin; }) -
                             1;
    const Run* const runs = runs_.data() + part->first_run;
    const auto tell = [&](std::ptrdiff_t at, std::uint64_t now) {
      visit(static_cast<std::uint64_t>(address_at(part->base, at) - memory_), packed_ + offset, now);
      offset += now;
      bytes -= now;
    };
    const std::uint64_t within = offset - part->begin;
    if (part->is_flat) return tell(runs[0].offset + static_cast<std::ptrdiff_t>(within), bytes);
    std::uint64_t skipped = within % part->size;
    for (std::uint64_t element = within / part->size; bytes != 0; ++element) {
      const std::ptrdiff_t origin = static_cast<std::ptrdiff_t>(element) * part->extent;
      for (std::size_t r = 0; r < part->run_count && bytes != 0; ++r) {
        const Run& run = runs[r];
        const std::uint64_t skip = std::min<std::uint64_t>(skipped, run.bytes);
        skipped -= skip;
        if (skip != run.bytes)
          tell(origin + run.offset + static_cast<std::ptrdiff_t>(skip), std::min(run.bytes - skip, bytes));
      }
    }
  }
  // The same for all parts.
  template <class Visit>
  void each_piece_of_all(std::uint64_t packed_bytes, const Visit& visit) const {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const std::uint64_t end = i + 1 < parts_.size() ? parts_[i + 1].begin : packed_bytes;
      each_piece(parts_[i].begin, end - parts_[i].begin, visit);
    }
  }
  void swap(GappedParts& other) {
    parts_.swap(other.parts_);
    runs_.swap(other.runs_);
    std::swap(packed_, other.packed_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  static constexpr std::size_t kMostRuns = 1 << 14;
  struct Part {
    std::uint64_t begin;  // packed
    char* base;
    std::uint64_t size;  // of an element, and its extent
    std::ptrdiff_t extent;
    std::size_t first_run, run_count;
    bool is_flat;
  };

  // Elements reach farthest at both ends of their row.
  static void hull(const Region& region, char** first, char** end) {
    const Layout& layout = *region.layout;
    const auto last = static_cast<std::ptrdiff_t>(region.count - 1) * layout.extent;
    for (std::size_t r = 0; r < layout.run_count; ++r) {
      for (const std::ptrdiff_t origin : {std::ptrdiff_t{0}, last}) {
        char* const at = address_at(region.base, origin + layout.runs[r].offset);
        if (*first == nullptr || at < *first) *first = at;
        *end = std::max(*end, at + layout.runs[r].bytes);
      }
    }
    // One run of a row without gaps.
    if (layout.contiguous) *end = std::max(*end, address_at(region.base, layout.runs[0].offset) + region.bytes());
  }

  Array<Part> parts_;
  Array<Run> runs_;
  std::size_t first_run_ = 0;
  char *packed_ = nullptr, *memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace stretto::overlap
