// SPDX-License-Identifier: BSD-3-Clause
// The verifier's memory: each rank's buffers as cells of symbols. Says whether two steps that touch
// a cell are ordered.
#include <algorithm>

#include "sched/verify.hpp"

namespace stretto::sched {

std::size_t Verifier::find(const Memory& cells, std::uint64_t at) {
  if (cells.empty() || cells.back().end <= at) return cells.size();
  return static_cast<std::size_t>(
      std::partition_point(cells.begin(), cells.end(), [at](const Cell& c) { return c.end <= at; }) - cells.begin());
}

void Verifier::split(Memory& cells, std::uint64_t at) {
  const std::size_t i = find(cells, at);
  if (i == cells.size() || cells[i].begin >= at) return;
  Cell tail = cells[i];
  tail.origin += at - tail.begin;
  tail.begin = at;
  cells[i].end = at;
  cells.insert(cells.begin() + static_cast<std::ptrdiff_t>(i) + 1, tail);
}

bool Verifier::load(int rank, std::uint32_t step, Slice slice, std::vector<Piece>& pieces) {
  pieces.clear();
  if (slice.length == 0) return true;
  Memory& cells = memory(rank, slice.buffer);
  split(cells, slice.offset);
  split(cells, slice.end());
  std::uint64_t at = slice.offset;
  for (std::size_t i = find(cells, at); at < slice.end(); ++i) {
    if (i == cells.size() || cells[i].begin != at) {
      return fail(rank, step, "reads " + text_of({slice.buffer, at, 1}) + " before it is written");
    }
    Cell& cell = cells[i];
    if (!ordered(rank, cell.writer, step)) {
      return fail(rank, step, "reads what step " + std::to_string(cell.writer) + " writes, and does not depend on it");
    }
    if (cell.readers == kNone || readers_[cell.readers].step != step) {
      readers_.push_back({step, cell.readers});
      cell.readers = static_cast<std::uint32_t>(readers_.size()) - 1;
    }
    pieces.push_back({cell.end - cell.begin, cell.origin, cell.term});
    at = cell.end;
  }
  return true;
}

bool Verifier::store(int rank, std::uint32_t step, Slice slice, const std::vector<Piece>& pieces) {
  if (slice.length == 0) return true;
  Memory& cells = memory(rank, slice.buffer);
  split(cells, slice.offset);
  split(cells, slice.end());
  const std::size_t first = find(cells, slice.offset);
  std::size_t last = first;
  for (; last < cells.size() && cells[last].begin < slice.end(); ++last) {
    if (!ordered(rank, cells[last].writer, step)) {
      return fail(rank, step,
                  "overwrites what step " + std::to_string(cells[last].writer) + " writes, and does not depend on it");
    }
    for (std::uint32_t r = cells[last].readers; r != kNone; r = readers_[r].next) {
      if (readers_[r].step != step && !ordered(rank, readers_[r].step, step)) {
        return fail(rank, step,
                    "overwrites what step " + std::to_string(readers_[r].step) + " reads, and does not depend on it");
      }
    }
  }
  // Neighbouring pieces that continue each other share one cell: most do.
  std::size_t count = 0;
  const Piece* before = nullptr;
  for (const Piece& piece : pieces) {
    count += before && before->term == piece.term && before->origin + before->length == piece.origin ? 0 : 1;
    before = &piece;
  }
  const auto place = cells.begin() + static_cast<std::ptrdiff_t>(first);
  if (count > last - first) {
    cells.insert(place, count - (last - first), Cell{});
  } else {
    cells.erase(place, place + static_cast<std::ptrdiff_t>(last - first - count));
  }
  std::uint64_t at = slice.offset;
  std::size_t i = first;
  before = nullptr;
  for (const Piece& piece : pieces) {
    if (before && before->term == piece.term && before->origin + before->length == piece.origin) {
      cells[i - 1].end += piece.length;
    } else {
      cells[i++] = {at, at + piece.length, piece.origin, piece.term, step, kNone};
    }
    at += piece.length;
    before = &piece;
  }
  return true;
}

bool Verifier::combine(int rank, std::uint32_t step, const std::vector<Piece>& left, const std::vector<Piece>& right) {
  result_.clear();
  std::size_t j = 0;
  std::uint64_t right_used = 0;
  for (Piece l : left) {
    while (l.length != 0) {
      const Piece& r = right[j];
      const std::uint64_t length = std::min(l.length, r.length - right_used);
      if (l.origin != r.origin + right_used) return fail(rank, step, "combines different positions");
      const Terms::Id sum = terms_.combine(l.term, r.term);
      if (sum == Terms::kBad) return fail(rank, step, "combines contributions twice or out of order");
      result_.push_back({length, l.origin, sum});
      l.length -= length;
      l.origin += length;
      right_used += length;
      if (right_used == r.length) {
        right_used = 0;
        ++j;
      }
    }
  }
  return true;
}

// Whether a chain of dependencies leads from `step` back to `before`.
bool Verifier::ordered(int rank, std::uint32_t before, std::uint32_t step) {
  if (before == kNone || before == step) return true;
  const Schedule& schedule = schedules_[rank];
  for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[step])) {
    if (on == before) return true;
  }
  ++search_;
  stack_.assign(1, step);
  while (!stack_.empty()) {
    const std::uint32_t at = stack_.back();
    stack_.pop_back();
    for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[at])) {
      if (on == before) return true;
      if (on < before || stamp_[global(rank, on)] == search_) continue;
      stamp_[global(rank, on)] = search_;
      stack_.push_back(on);
    }
  }
  return false;
}

}  // namespace stretto::sched
