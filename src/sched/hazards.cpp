// SPDX-License-Identifier: BSD-3-Clause
#include "sched/hazards.hpp"

namespace stretto::sched {

std::size_t Hazards::find(std::uint64_t at) const {
  const std::size_t cells = cells_.size();
  if (cells == 0 || cells_[cells - 1].end <= at) return cells;  // most schedules go through their buffers in order
  std::size_t low = 0;
  std::size_t high = cells;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (cells_[middle].end <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void Hazards::split(std::uint64_t at) {
  const std::size_t i = find(at);
  if (i == cells_.size() || cells_[i].begin >= at) return;
  if (!cells_.splice(i + 1, 0, 1)) return;
  cells_[i + 1] = cells_[i];
  cells_[i].end = at;
  cells_[i + 1].begin = at;
}

Hazards::Span Hazards::isolate(std::uint64_t begin, std::uint64_t end) {
  split(begin);
  split(end);
  const std::size_t first = find(begin);
  std::size_t i = first;
  for (std::uint64_t at = begin; at < end; ++i) {
    if (i == cells_.size() || cells_[i].begin > at) {
      const std::uint64_t gap_end = i == cells_.size() || cells_[i].begin > end ? end : cells_[i].begin;
      if (!cells_.splice(i, 0, 1)) return {first, first};
      cells_[i] = {at, gap_end, kNone, kNone};
    }
    at = cells_[i].end;
  }
  return {first, i};
}

}  // namespace stretto::sched
