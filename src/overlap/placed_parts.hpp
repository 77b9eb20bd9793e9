// SPDX-License-Identifier: BSD-3-Clause
// A buffer of the program's as schedules see it: parts that follow each other without gaps. If a
// part has gaps of its own, all are packed in a copy.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "base/array.hpp"
#include "base/region.hpp"
#include "overlap/gapped_parts.hpp"
#include "sched/schedule.hpp"

namespace stretto::overlap {

class PlacedParts {
 public:
  struct Place {
    int part = 0;
    char* at = nullptr;               // null: it is nowhere, or in more than one part
    bool begins = true, ends = true;  // it is where the part begins, or ends
  };

  PlacedParts() = default;
  ~PlacedParts() { std::free(copy_); }
  PlacedParts(const PlacedParts&) = delete;
  PlacedParts& operator=(const PlacedParts&) = delete;

  // `order` has the block of each part; null: as they stand. False: no memory.
  bool start(const Blocks& blocks, int count, const int* order = nullptr, bool copies = false) {
    blocks_ = blocks;
    order_ = order;
    if (!begins_.resize(static_cast<std::size_t>(count) + 1, 0) || !at_.resize(begins_.size() - 1, nullptr))
      return false;
    for (int i = 0; i < count; ++i) {
      const Region part = region(i);
      begins_[i + 1] = begins_[i] + part.bytes();
      at_[i] = part.flat();
      copies = copies || (part.bytes() != 0 && at_[i] == nullptr);
    }
    if (!copies) return true;
    copy_ = static_cast<char*>(std::malloc(bytes() + 1));
    for (int i = 0; i < count && copy_ != nullptr; ++i) Stream(region(i)).pack(at_[i] = copy_ + begins_[i], bytes(i));
    return copy_ != nullptr;
  }
  [[nodiscard]] bool is_copy() const { return copy_ != nullptr; }
  [[nodiscard]] int count() const { return static_cast<int>(at_.size()); }
  [[nodiscard]] const std::uint64_t* begins() const { return begins_.data(); }
  [[nodiscard]] std::uint64_t bytes() const { return at_.empty() ? 0 : begins_[at_.size()]; }
  [[nodiscard]] std::uint64_t bytes(int part) const { return begins_[part + 1] - begins_[part]; }
  [[nodiscard]] char* at(int part) const { return at_[part]; }
  [[nodiscard]] Place find(const sched::Slice& slice) const {
    const std::uint64_t* const end = std::upper_bound(begins_.begin(), begins_.end(), slice.offset);
    if (end == begins_.end() || slice.end() > *end) return {};
    const auto part = static_cast<int>(end - begins_.begin() - 1);
    return {part, at_[part] + (slice.offset - end[-1]), slice.offset == end[-1], slice.end() == *end};
  }
  // Of a copy: where its bytes belong. False: as GappedParts says.
  bool describe(GappedParts* gapped) const { return gapped->start(blocks_, count(), order_, copy_); }
  // The copy is somebody else's now.
  void give_away_copy() { copy_ = nullptr; }
  // Puts what came into a copy to where the program wants it.
  void unpack() const {
    for (int i = 0; i < count() && is_copy(); ++i) Stream(region(i)).unpack(at_[i], bytes(i));
  }

 private:
  [[nodiscard]] Region region(int part) const { return blocks_.at(order_ != nullptr ? order_[part] : part); }

  Blocks blocks_{};
  const int* order_ = nullptr;
  Array<std::uint64_t> begins_;
  Array<char*> at_;
  char* copy_ = nullptr;
};

}  // namespace stretto::overlap
