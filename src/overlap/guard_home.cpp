// SPDX-License-Identifier: BSD-3-Clause
// Bringing the pages of covers home.
#include <algorithm>
#include <cerrno>

#include "overlap/guard.hpp"
#include "sys/sys.hpp"

namespace stretto::overlap {

// The first pages in [offset, end) that are away, as far as they lie side by side in one part.
// `least`: kReady leaves out those that are not complete.
Guard::Piece Guard::next_away(const Cover& cover, std::uint64_t offset, std::uint64_t end, std::uint8_t least) const {
  const std::uint64_t step = faults_.page_bytes;
  offset = offset / step * step;
  end = std::min<std::uint64_t>(end, cover.landing.bytes);
  while (offset < end && page(cover, offset).load(std::memory_order_acquire) < least) offset += step;
  if (offset >= end) return {};
  for (int i = 0; i < cover.parts; ++i) {
    const std::uint64_t first = cover.part[i].offset, bytes = cover.part[i].bytes;
    if (offset < first || offset >= first + bytes) continue;
    const std::uint64_t most = std::min(end, first + bytes);
    std::uint64_t last = offset;
    while (last < most && page(cover, last).load(std::memory_order_acquire) >= least) last += step;
    return {offset, last - offset, cover.part[i].at + (offset - first)};
  }
  return {};
}

std::uint64_t Guard::mark_home(Cover* cover, std::uint64_t offset, std::uint64_t bytes) {
  std::uint64_t changed = 0;
  for (std::uint64_t at = offset; at < offset + bytes; at += faults_.page_bytes)
    changed += page(*cover, at).exchange(kHome, std::memory_order_acq_rel) != kHome ? faults_.page_bytes : 0;
  cover->away_bytes.fetch_sub(changed, std::memory_order_acq_rel);
  away_bytes_.fetch_sub(changed, std::memory_order_acq_rel);
  return changed;
}

int Guard::bring_by_copy(Cover* cover, const Piece& piece, std::uint64_t* done) {
  std::size_t copied = 0;
  const char* const from = cover->landing.at + piece.offset;
  const int error = sys::faults_copy(faults_, address(piece.at), from, piece.bytes, &copied);
  if (copied != 0) cover->dirty = true;
  *done += copied;
  return error;
}

// The kernel moves only to memory with the same rights. A page that the program has locked or made
// read-only meanwhile gets a copy.
int Guard::bring(Cover* cover, const Piece& piece, std::uint64_t* done) {
  std::size_t moved = 0;
  char* const from = cover->landing.at + piece.offset;
  ++moves_;
  const int error = sys::faults_move_in(faults_, address(piece.at), from, piece.bytes, &moved);
  *done = moved;
  if (moved != 0 || error == 0 || error == EAGAIN || error == EEXIST) return moved != 0 ? 0 : error;
  return bring_by_copy(cover, {piece.offset, faults_.page_bytes, piece.at}, done);
}

int Guard::bring_all(Cover* cover, std::uint64_t offset, std::uint64_t end, std::uint8_t least) {
  const auto index = static_cast<int>(cover - covers_);
  constexpr int kTries = 200;
  constexpr std::uint64_t kNapNs = 20'000;
  for (int failed = 0;;) {
    const Piece piece = next_away(*cover, offset, end, least);
    if (piece.bytes == 0) return 0;
    copy_to_children(piece, cover->landing.at + piece.offset);
    std::uint64_t done = 0;
    const int error = bring(cover, piece, &done);
    if (error == EEXIST || error == ENOENT) {
      (void)mark_home(cover, piece.offset, faults_.page_bytes);
      cover->dirty = true;
      (void)tell(
          {error == EEXIST ? Told::Kind::clash : Told::Kind::dropped, false, index, piece.offset, faults_.page_bytes});
    } else if (error != 0) {
      if (++failed > (error == EAGAIN ? kTries : 1)) return error;
      if (error == EAGAIN && take_in() != 0) sys::nap_ns(kNapNs);
      if (told_count_ != 0) due_at(0);
    }
    (void)mark_home(cover, piece.offset, done);
  }
}

int Guard::publish(int index, std::uint64_t offset, std::uint64_t bytes) {
  Cover* const cover = &covers_[index];
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, cover->landing.bytes);
  int error = 0;
  if (cover->units == 0) error = bring_all(cover, offset, end);
  for (std::uint64_t at = offset; cover->units != 0 && at < end && error == 0;) {
    const std::size_t unit = unit_at(*cover, at);
    const Piece whole = unit_part(*cover, unit);
    const std::uint64_t last = std::min(end, whole.offset + whole.bytes);
    if (!hold(cover, unit, {at, last - at, 0})) {
      const bool is_held = huge_unit(*cover, unit).state == HugeUnit::State::held;
      error = is_held ? bring_all(cover, whole.offset, whole.offset + whole.bytes) : bring_all(cover, at, last);
      if (error == 0) make_huge(cover, unit, true);
    }
    at = last;
  }
  if (error == 0 && !any_away()) end_children();
  return error;
}

void Guard::publish_soon(int index, std::uint64_t offset, std::uint64_t bytes) {
  ReadyRuns& soon = covers_[index].soon;
  if (!soon.add({offset, bytes})) {
    bring_soon(index, 0);
    (void)soon.add({offset, bytes});
  }
  due_at(0);
}

// Runs of at least so many bytes. What cannot go home now, release() brings in the end.
void Guard::bring_soon(int index, std::uint64_t least_bytes) {
  for (ReadyRun run; covers_[index].soon.take(least_bytes, &run);) (void)publish(index, run.offset, run.bytes);
}

void Guard::bring_due() {
  for (int index = 0; index < kMostCovers; ++index) bring_soon(index, covers_[index].is_touched ? 0 : kTogetherBytes);
}

int Guard::release(int index) {
  Cover* const cover = &covers_[index];
  if (const int error = publish(index, 0, cover->landing.bytes)) return error;
  for (int i = 0; i < cover->parts; ++i) {
    const sys::Pages part{address(cover->part[i].at), cover->part[i].bytes};
    // What cannot be released stays registered. A touch of a page that is dropped there gets zeros.
    if (part.bytes != 0) (void)twice([&] { return sys::faults_release(faults_, part); });
  }
  cover->soon.clear();
  cover->is_touched = false;
  make_rest_huge(cover);
  const sys::Pages landing = cover->landing;
  const bool reuse = !cover->dirty || twice([&] { return sys::spare_empty(faults_, landing); }) == 0;
  drop_cover(cover, reuse);
  return 0;
}

}  // namespace stretto::overlap
