// SPDX-License-Identifier: BSD-3-Clause
// Huge pages of a buffer: they go home as a whole, or are made again.
#include <algorithm>

#include "overlap/guard.hpp"
#include "sys/sys.hpp"

namespace stretto::overlap {

using Huge = HugeUnit::State;

void Guard::due_at(std::uint64_t ns) {
  if (ns >= due_ns_) return;
  due_ns_ = ns;
  if (limits_.alarm.set != nullptr) limits_.alarm.set(limits_.alarm.context, ns);
}

HugeUnit& Guard::huge_unit(const Cover& cover, std::size_t unit) {
  return cover.spare.load(std::memory_order_relaxed)->units[unit];
}

std::size_t Guard::unit_at(const Cover& cover, std::uint64_t offset) const {
  return static_cast<std::size_t>((cover.lead_bytes + offset) / faults_.huge_bytes);
}

std::uint64_t Guard::unit_address(const Cover& cover, std::size_t unit) const {
  return cover.begin - cover.lead_bytes + unit * faults_.huge_bytes;
}

// Units for which there was no time. The next cover of the same memory tries again. Of two that
// share a place in the table the later one stays.
std::atomic<std::uint64_t>& Guard::place_of(std::uint64_t unit) { return owed_[unit / faults_.huge_bytes % kMostOwed]; }
void Guard::owe(std::uint64_t unit, bool owed) {
  std::uint64_t known = unit;
  if (owed)
    place_of(unit).store(unit, std::memory_order_relaxed);
  else
    (void)place_of(unit).compare_exchange_strong(known, 0, std::memory_order_relaxed);
}

// What of the cover lies in the unit.
Guard::Piece Guard::unit_part(const Cover& cover, std::size_t unit) const {
  const std::uint64_t begin = unit * faults_.huge_bytes, end = begin + faults_.huge_bytes;
  const std::uint64_t from = std::max(begin, cover.lead_bytes) - cover.lead_bytes;
  const std::uint64_t to = std::min<std::uint64_t>(end - cover.lead_bytes, cover.landing.bytes);
  return {from, to - from, cover.begin + from};
}

// Calls `each(unit, is_huge)` for memory that lies in its units as the cover does.
template <class Each>
void Guard::each_unit(Cover* cover, const char* memory, const Each& each) {
  constexpr std::size_t kBatch = 512;
  for (std::size_t first = 0; first < cover->units; first += kBatch) {
    std::uint8_t is_huge[kBatch] = {};
    const std::size_t count = std::min(kBatch, cover->units - first);
    const std::uint64_t from = unit_part(*cover, first).offset;
    const Piece last = unit_part(*cover, first + count - 1);
    std::size_t found = 0;
    const sys::Pages part{const_cast<char*>(memory) + from, last.offset + last.bytes - from};
    const bool known = sys::huge_pages(faults_, part, is_huge, &found) == 0;
    for (std::size_t i = 0; i < count; ++i) each(huge_unit(*cover, first + i), known && is_huge[i] != 0);
  }
}

// Whether all of a huge page is guarded.
bool Guard::is_guarded_whole(const Cover& cover, std::uint64_t at) const {
  for (int i = 0; i < cover.parts; ++i) {
    const std::uint64_t begin = cover.part[i].at, bytes = cover.part[i].bytes;
    if (at >= begin && at + faults_.huge_bytes <= begin + bytes) return true;
  }
  return false;
}

// Before the pages move. `hull` is all memory from the first of them to the last.
void Guard::find_units(Cover* cover, sys::Pages hull) {
  cover->begin = reinterpret_cast<std::uintptr_t>(hull.at);
  cover->lead_bytes = cover->begin % faults_.huge_bytes;
  cover->units = unit_at(*cover, hull.bytes - 1) + 1;
  std::size_t index = 0;
  each_unit(cover, hull.at, [&](HugeUnit& unit, bool is_huge) {
    const std::uint64_t at = unit_address(*cover, index++);
    unit = {};
    unit.whole = is_guarded_whole(*cover, at);
    if (is_huge)
      unit.state = unit.whole ? Huge::held : Huge::open;
    else if (place_of(at).load(std::memory_order_relaxed) == at)
      unit.state = Huge::open;
  });
}

// After they have moved. The kernel may have split a huge page, for example of a program that has
// forked.
void Guard::check_units(Cover* cover) {
  each_unit(cover, cover->landing.at, [](HugeUnit& unit, bool is_huge) {
    if (unit.state == Huge::held && !is_huge) unit.state = Huge::open;
  });
}

// Notes that these pages of a unit are complete. True: they wait for the others.
bool Guard::hold(Cover* cover, std::size_t index, const Piece& pages) {
  HugeUnit& unit = huge_unit(*cover, index);
  if (unit.state != Huge::held) return false;
  for (std::uint64_t at = pages.offset; at < pages.offset + pages.bytes; at += faults_.page_bytes) {
    std::uint8_t away = kAway;
    if (page(*cover, at).compare_exchange_strong(away, kReady, std::memory_order_acq_rel))
      unit.ready += static_cast<std::uint32_t>(faults_.page_bytes);
  }
  return unit.ready < faults_.huge_bytes;
}

void Guard::is_wanted(Cover* cover, std::uint64_t offset) {
  if (cover->units == 0) return;
  HugeUnit& unit = huge_unit(*cover, unit_at(*cover, offset));
  if (unit.state != Huge::held || unit.wanted_ns != 0) return;
  unit.wanted_ns = sys::now_ns();
  due_at(unit.wanted_ns + kPatienceNs);
}

// Some pages will not come home, or come home elsewhere.
void Guard::is_changed(Cover* cover) {
  cover->changed = true;
  if (cover->units != 0) due_at(0);
}

void Guard::open_unit(Cover* cover, std::size_t index) {
  HugeUnit& unit = huge_unit(*cover, index);
  if (unit.state != Huge::held) return;
  unit.state = Huge::open;
  const Piece part = unit_part(*cover, index);
  (void)bring_all(cover, part.offset, part.offset + part.bytes, kReady);  // release() tries again
}

void Guard::open_overdue() {
  const std::uint64_t now = sys::now_ns();
  if (due_ns_ > now) return;
  std::uint64_t next = kNever;
  due_ns_ = kNever;
  for (Cover& cover : covers_) {
    if (cover.state != State::live) continue;
    for (std::size_t i = 0; i < cover.units; ++i) {
      HugeUnit& unit = huge_unit(cover, i);
      if (unit.state != Huge::held || (unit.wanted_ns == 0 && !cover.changed)) continue;
      if (cover.changed || unit.wanted_ns + kPatienceNs <= now)
        open_unit(&cover, i);
      else
        next = std::min(next, unit.wanted_ns + kPatienceNs);
    }
  }
  due_ns_ = std::min(due_ns_, next);
  if (limits_.alarm.set != nullptr) limits_.alarm.set(limits_.alarm.context, due_ns_);
}

// When nothing of the unit is away. The kernel takes whole units of one mapping. So a unit that is
// guarded only partly has to wait until nothing is registered.
void Guard::make_huge(Cover* cover, std::size_t index, bool is_registered) {
  HugeUnit& unit = huge_unit(*cover, index);
  if (unit.state != Huge::open || cover->changed) return;
  const Piece part = unit_part(*cover, index);
  if (is_registered && !unit.whole) return;
  if (next_away(*cover, part.offset, part.offset + part.bytes, kAway).bytes != 0) return;
  const std::uint64_t now = sys::now_ns();
  const std::uint64_t at = unit_address(*cover, index);
  if (cover->making_ns * limits_.making_share > now - cover->began_ns) return owe(at, true);
  unit.state = Huge::small;
  (void)sys::huge_page_make(faults_, address(at));
  cover->making_ns += sys::now_ns() - now;
  owe(at, false);
}

// Once nothing is registered.
void Guard::make_rest_huge(Cover* cover) {
  bool whole = cover->units != 0 && !cover->changed;
  for (std::size_t i = 0; i < cover->units; ++i) {
    whole = whole && huge_unit(*cover, i).state == Huge::held;
    make_huge(cover, i, false);
  }
  if (!whole) cover->spare.load(std::memory_order_relaxed)->has_tables = true;
}

}  // namespace stretto::overlap
