// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/pages.hpp"

#include <algorithm>
#include <cstdlib>

namespace stretto::overlap {
namespace {

constexpr std::uint32_t kShared = 1u << 31;

std::uint64_t end_of(const Block& block) { return block.offset + block.bytes; }

// One pass of a sort by digits: stable, by the byte at `shift`.
void sort_by_byte(const Block* blocks, const Array<std::uint32_t>& from, Array<std::uint32_t>* to, unsigned shift) {
  std::size_t begin[257] = {};
  const auto digit = [&](std::uint32_t i) { return blocks[i].offset >> shift & 255; };
  for (const std::uint32_t i : from) ++begin[digit(i) + 1];
  for (std::size_t i = 1; i < 257; ++i) begin[i] += begin[i - 1];
  for (const std::uint32_t i : from) (*to)[begin[digit(i)]++] = i;
}

}  // namespace

// ---- layout ----

bool PageLayout::sort(const Block* blocks, std::size_t count) {
  order_.clear();
  if (!order_.reserve(count)) return false;
  std::uint64_t last = 0;
  bool sorted = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (blocks[i].bytes == 0) continue;
    (void)order_.push(static_cast<std::uint32_t>(i));
    sorted = sorted && blocks[i].offset >= last;
    last = std::max(last, blocks[i].offset);
  }
  if (sorted) return true;
  Array<std::uint32_t> other;
  if (!other.resize(order_.size(), 0)) return false;
  for (unsigned shift = 0; shift < 64 && last >> shift != 0; shift += 8) {
    sort_by_byte(blocks, order_, &other, shift);
    order_.swap(other);
  }
  return true;
}

LayoutError PageLayout::check(const Block* blocks) const {
  std::uint64_t end = 0;
  for (const std::uint32_t i : order_) {
    const Block& block = blocks[i];
    if (block.offset > buffer_bytes_ || block.bytes > buffer_bytes_ - block.offset) return LayoutError::outside;
    if (block.offset < end) return LayoutError::overlaps;
    end = end_of(block);
  }
  return LayoutError::none;
}

// Units are counted from the one in which the buffer begins, until the range is known.
void PageLayout::place(const Block* blocks) {
  std::uint64_t first_own = ~std::uint64_t{0}, last_own = 0;
  for (const std::uint32_t i : order_) {
    const Block& block = blocks[i];
    BlockPlace& at = places_[i];
    const std::uint64_t first = (before_ + block.offset + unit_ - 1) / unit_, last = (before_ + end_of(block)) / unit_;
    if (first < last) {
      at.own = {first, last - first};
      at.edge_before = first * unit_ - before_ - block.offset;
      first_own = std::min(first_own, first);
      last_own = last;
    } else {
      at.edge_before = block.bytes;
    }
    at.edge_behind = block.bytes - at.edge_before - at.own.count * unit_;
    edge_bytes_ += at.edge_before + at.edge_behind;
  }
  if (first_own >= last_own) return;
  offset_ = first_own * unit_ - before_;
  units_ = last_own - first_own;
  for (BlockPlace& at : places_)
    if (at.own.count != 0) at.own.first -= first_own;
}

void PageLayout::add_shared(std::uint64_t unit, std::uint64_t bytes) {
  if (bytes == 0) return;
  if (!shared_.empty() && shared_.back().unit == unit) {
    shared_.back().awaited += bytes;
  } else {
    (void)shared_.push({unit, bytes});
  }
}

// Blocks in ascending order, cut to the range.
void PageLayout::find_shared(const Block* blocks) {
  std::uint64_t next = 0;  // the first unit behind the blocks so far
  for (const std::uint32_t i : order_) {
    const std::uint64_t begin = std::max(blocks[i].offset, offset_),
                        end = std::min(end_of(blocks[i]), offset_ + bytes());
    if (begin >= end) continue;
    const std::uint64_t from = begin - offset_, to = end - offset_;
    const std::uint64_t first = from / unit_, last = (to - 1) / unit_;
    if (first > next) (void)idle_.push({next, first - next});
    next = last + 1;
    if (first == last) {
      if (to - from < unit_) add_shared(first, to - from);
    } else {
      if (from % unit_ != 0) add_shared(first, unit_ - from % unit_);
      if (to % unit_ != 0) add_shared(last, to % unit_);
    }
  }
}

// What lies between units that hold bytes of gaps.
void PageLayout::find_guarded() {
  std::uint64_t next = 0;
  const auto end_run = [&](std::uint64_t hole, std::uint64_t behind) {
    if (hole > next) (void)guarded_.push({next, hole - next});
    next = behind;
  };
  const UnitRun* idle = idle_.begin();
  for (const SharedUnit& shared : shared_) {
    if (shared.awaited == unit_) continue;
    for (; idle != idle_.end() && idle->first < shared.unit; ++idle) end_run(idle->first, idle->first + idle->count);
    end_run(shared.unit, shared.unit + 1);
  }
  for (; idle != idle_.end(); ++idle) end_run(idle->first, idle->first + idle->count);
  end_run(units_, units_);
}

bool PageLayout::is_guarded(std::uint64_t unit) const {
  const auto begins_behind = [](std::uint64_t at, const UnitRun& run) { return at < run.first; };
  const UnitRun* const next = std::upper_bound(guarded_.begin(), guarded_.end(), unit, begins_behind);
  return next != guarded_.begin() && unit < next[-1].first + next[-1].count;
}

// Units within a block are guarded. Those at its ends may hold a gap.
Block PageLayout::guarded_part(const Block& part) const {
  std::uint64_t begin = std::max(part.offset, offset_), end = std::min(end_of(part), offset_ + bytes());
  if (begin >= end) return {};
  const std::uint64_t first = (begin - offset_) / unit_, last = (end - 1 - offset_) / unit_;
  if (!is_guarded(first)) begin = offset_ + (first + 1) * unit_;
  if (!is_guarded(last)) end = offset_ + last * unit_;
  return begin < end ? Block{begin, end - begin} : Block{};
}

LayoutError PageLayout::make(const void* buffer, std::uint64_t bytes, const Block* blocks, std::size_t count,
                             std::uint64_t unit) {
  buffer_bytes_ = bytes;
  unit_ = unit;
  before_ = reinterpret_cast<std::uintptr_t>(buffer) % unit;
  offset_ = units_ = edge_bytes_ = 0;
  places_.clear();
  shared_.clear();
  idle_.clear();
  guarded_.clear();
  if (!sort(blocks, count) || !places_.resize(count, {})) return LayoutError::no_memory;
  if (const LayoutError error = check(blocks); error != LayoutError::none) return error;
  place(blocks);
  if (units_ != 0) find_shared(blocks);
  if (shared_.failed() || idle_.failed()) return LayoutError::no_memory;
  find_guarded();
  return guarded_.failed() ? LayoutError::no_memory : LayoutError::none;
}

// ---- arrival ----

Arrival::~Arrival() { std::free(here_); }

bool Arrival::begin(const PageLayout& layout) {
  std::free(here_);
  offset_ = layout.offset();
  units_ = layout.units();
  unit_ = layout.unit_bytes();
  edges_left_ = bytes_left_ = layout.edge_bytes();
  for (const BlockPlace& at : layout.places()) bytes_left_ += at.own.count * unit_;
  here_ = static_cast<std::uint32_t*>(std::calloc(units_ + 1, sizeof *here_));
  if (here_ == nullptr) return false;
  for (const SharedUnit& shared : layout.shared())
    here_[shared.unit] = static_cast<std::uint32_t>(unit_ - shared.awaited) | kShared;
  return true;
}

// A part of a unit. True: now the unit is complete.
bool Arrival::add(std::uint64_t unit, std::uint64_t bytes) {
  here_[unit] += static_cast<std::uint32_t>(bytes);
  if ((here_[unit] & kShared) != 0) edges_left_ -= bytes;
  return (here_[unit] & ~kShared) == unit_;
}

void Arrival::awaits(std::uint64_t offset, std::uint64_t bytes) {
  bytes_left_ += bytes;
  const std::uint64_t begin = std::max(offset, offset_), end = std::min(offset + bytes, offset_ + units_ * unit_);
  if (begin >= end) {
    edges_left_ += bytes;
    return;
  }
  edges_left_ += bytes - (end - begin);
  for (std::uint64_t at = begin - offset_; at < end - offset_;) {
    const std::uint64_t now = std::min(unit_ - at % unit_, end - offset_ - at);
    here_[at / unit_] -= static_cast<std::uint32_t>(now);
    at += now;
  }
}

UnitRun Arrival::arrived(std::uint64_t offset, std::uint64_t bytes) {
  bytes_left_ -= bytes;
  const std::uint64_t begin = std::max(offset, offset_), end = std::min(offset + bytes, offset_ + units_ * unit_);
  if (begin >= end) {
    edges_left_ -= bytes;
    return {};
  }
  edges_left_ -= bytes - (end - begin);
  const std::uint64_t from = begin - offset_, to = end - offset_;
  std::uint64_t first = from / unit_, last = to / unit_;  // last: the first unit that is not filled to its end
  if (first == last) return add(first, to - from) ? UnitRun{first, 1} : UnitRun{};
  // Units in between lie in one piece of one block: they are its own.
  if (from % unit_ != 0 && !add(first, unit_ - from % unit_)) ++first;
  if (to % unit_ != 0 && add(last, to % unit_)) ++last;
  return first < last ? UnitRun{first, last - first} : UnitRun{};
}

}  // namespace stretto::overlap
