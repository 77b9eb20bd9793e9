// SPDX-License-Identifier: BSD-3-Clause
// A call into types with gaps: pages move when all sources are in the call, and data are placed
// piece by piece.
#include "overlap/pending.hpp"

namespace stretto::overlap {

using transport::bulk::Range;

Refusal Pending::prepare_gapped(const Exchange& call) {
  do_not_cover();
  if (!prepare(call) || !copy_what_goes(call)) return Refusal::no_memory;
  gapped_.swap(*call.gapped);
  is_gapped_ = waits_for_cover_ = true;
  return Refusal::none;
}

// The driver looks at pages from begin_placing() on.
Refusal Pending::cover_gapped(std::uint64_t unit) {
  waits_for_cover_ = false;
  const Block all{0, memory_bytes_};
  Refusal refused = Refusal::none;
  if (layout_.make(memory_, memory_bytes_, &all, 1, unit) != LayoutError::none || layout_.units() == 0)
    refused = Refusal::too_small;
  const auto pieces = [this](const auto& awaits) {
    gapped_.each_piece_of_all(buffer_bytes_, [&](std::uint64_t at, const char*, std::uint64_t n) { awaits(at, n); });
  };
  if (refused == Refusal::none && !arrival_.begin_gapped(layout_, pieces)) refused = Refusal::no_memory;
  if (refused == Refusal::none) refused = guard_.cover({memory_ + layout_.offset(), layout_.bytes()}, &cover_);
  if (refused != Refusal::none) cover_ = -1;
  if (refused == Refusal::lost) {
    Status none = Status::ok;
    (void)status_.compare_exchange_strong(none, Status::not_moved);
  }
  do_on_thread([](void* self) { static_cast<Pending*>(self)->begin_placing(); });
  return refused;
}

void Pending::forgo_cover() {
  if (waits_for_cover_) do_on_thread([](void* self) { static_cast<Pending*>(self)->begin_placing(); });
  waits_for_cover_ = false;
}

// The driver's thread.

// Pages with gaps are covered now, or will not be.
void Pending::begin_placing() {
  if (is_covered()) {
    is_placing_ = true;
    open_.fetch_add(1, std::memory_order_relaxed);  // the cover
    begin_pages();
    for (std::uint64_t unit = 0; unit < layout_.units(); ++unit)
      if (arrival_.is_idle(unit)) bring_home({unit, 1});
    if (own_.bytes != 0) has_placed(own_.offset, own_.bytes);
    for (const Receive& receive : receives_) {
      const Block& range = receive.what.range;
      if (!receive.what.to_buffer) continue;
      if (receive.handle->arrived_bytes.load(std::memory_order_relaxed) == range.bytes) {
        place(range.offset, range.bytes);
      } else {
        receive.handle->arrived.each([&](const Range& part) { place(range.offset + part.offset, part.bytes); });
      }
    }
    if (arrival_.edges_are_here()) edges_here_.store(true, std::memory_order_release);
  }
  one_receive_less();
}

// From the packed copy.
void Pending::place(std::uint64_t offset, std::uint64_t bytes) {
  gapped_.each_piece(offset, bytes, [this](std::uint64_t at, const char* from, std::uint64_t now) {
    take_to_buffer(at, from, now);
    bring_home(arrival_.arrived(at, now));
  });
}

void Pending::has_placed(std::uint64_t offset, std::uint64_t bytes) {
  gapped_.each_piece(offset, bytes, [this](std::uint64_t at, const char*, std::uint64_t now) {
    bring_home(arrival_.arrived(at, now));
  });
}

}  // namespace stretto::overlap
