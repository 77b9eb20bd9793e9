// SPDX-License-Identifier: BSD-3-Clause
// Parts of a message: those that are still to be sent, in their order, and those that have arrived.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/array.hpp"
#include "base/private_heap.hpp"

namespace stretto::transport::bulk {

struct Range {
  std::uint64_t offset = 0, bytes = 0;
  [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
  [[nodiscard]] Range common(const Range& other) const {
    const std::uint64_t begin = std::max(offset, other.offset), until = std::min(end(), other.end());
    return {begin, until > begin ? until - begin : 0};
  }
  bool operator==(const Range&) const = default;
};

// What is to be sent. Each byte is in it once.
class RangeQueue {
 public:
  // The ranges in this order, then the rest of the message by addresses. False: no memory.
  bool start(std::uint64_t total, const Range* order, std::uint32_t count) {
    first_ = 0;
    ranges_.clear();
    if (total != 0 && !ranges_.push({0, total})) return false;
    for (std::uint32_t i = count; i-- > 0;) (void)bring_forward(order[i]);
    return true;
  }
  [[nodiscard]] bool empty() const { return first_ == ranges_.size(); }
  // Takes up to `most` bytes of the first range.
  Range take(std::uint64_t most) {
    Range& first = ranges_[first_];
    const Range taken{first.offset, std::min(first.bytes, most)};
    first.offset += taken.bytes;
    first.bytes -= taken.bytes;
    if (first.bytes == 0) ++first_;
    return taken;
  }
  // What is left of the range goes next, by addresses. Returns how many bytes. Without memory the
  // order stays.
  std::uint64_t bring_forward(const Range& urgent) {
    Array<Range, PrivateHeap> ordered;
    std::ptrdiff_t urgent_count = 0;
    std::uint64_t bytes = 0;
    for (const bool is_urgent : {true, false}) {
      for (std::size_t i = first_; i < ranges_.size(); ++i) {
        const Range range = ranges_[i], common = range.common(urgent);
        if (is_urgent) {
          urgent_count += common.bytes != 0 && ordered.push(common) ? 1 : 0;
          bytes += common.bytes;
        } else if (common.bytes == 0) {
          ordered.push(range);
        } else {
          if (common.offset != range.offset) ordered.push({range.offset, common.offset - range.offset});
          if (common.end() != range.end()) ordered.push({common.end(), range.end() - common.end()});
        }
      }
    }
    if (ordered.failed()) return 0;
    std::sort(ordered.begin(), ordered.begin() + urgent_count,
              [](const Range& a, const Range& b) { return a.offset < b.offset; });
    ranges_.swap(ordered);
    first_ = 0;
    return bytes;
  }

 private:
  Array<Range, PrivateHeap> ranges_;
  std::size_t first_ = 0;
};

// What has arrived: disjoint ranges by addresses, merged where they touch.
class RangeSet {
 public:
  void clear() { ranges_.clear(); }
  [[nodiscard]] bool overlaps(const Range& range) const {
    const std::size_t at = first_ending_after(range.offset);
    return at < ranges_.size() && ranges_[at].offset < range.end();
  }
  [[nodiscard]] bool contains(const Range& range) const {
    const std::size_t at = first_ending_after(range.offset);
    return range.bytes == 0 || (at < ranges_.size() && ranges_[at].common(range) == range);
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (const Range& range : ranges_) visit(range);
  }
  // Adds a range that overlaps none. False: no memory.
  bool add(const Range& range) {
    const std::size_t at = first_ending_after(range.offset);
    const bool joins_left = at > 0 && ranges_[at - 1].end() == range.offset;
    const bool joins_right = at < ranges_.size() && ranges_[at].offset == range.end();
    if (joins_left) {
      ranges_[at - 1].bytes += range.bytes;
      if (!joins_right) return true;
      ranges_[at - 1].bytes += ranges_[at].bytes;
      return ranges_.splice(at, 1, 0);
    }
    if (joins_right) {
      ranges_[at].offset = range.offset;
      ranges_[at].bytes += range.bytes;
      return true;
    }
    if (!ranges_.splice(at, 0, 1)) return false;
    ranges_[at] = range;
    return true;
  }

 private:
  [[nodiscard]] std::size_t first_ending_after(std::uint64_t offset) const {
    const Range* const found =
        std::partition_point(ranges_.begin(), ranges_.end(), [&](const Range& range) { return range.end() <= offset; });
    return static_cast<std::size_t>(found - ranges_.begin());
  }
  Array<Range, PrivateHeap> ranges_;
};

}  // namespace stretto::transport::bulk
