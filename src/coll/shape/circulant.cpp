// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shape/circulant.hpp"

#include <bit>

namespace stretto::coll {

// Finds which block comes in each round of a phase. Every block travels along paths of falling
// jumps. `open` has the blocks that no round has yet, as bits. The search goes through the places
// that such paths reach, nearest to the target first. A place is good for round k if it lies before
// the source of that round and behind that of the next one.
struct Circulant::Search {
  const Circulant& graph;
  std::int64_t target;
  std::uint64_t open;
  std::int64_t last;  // where the last block was found
  int round = 0;
  int found[kMostRounds + 1] = {};

  [[nodiscard]] std::int64_t source(int k) const { return k > graph.rounds_ ? -1 : target - graph.jumps_[k]; }
  [[nodiscard]] int below(int block) const {
    const std::uint64_t lower = open & ((std::uint64_t{1} << block) - 1);
    return static_cast<int>(std::bit_width(lower)) - 1;
  }
  void from(std::int64_t place, int block) {
    for (; block >= 0 && round < graph.rounds_; block = below(block)) {
      const std::int64_t next = place + graph.jumps_[block];
      if (next > source(round) || next >= last) continue;
      if (next <= source(round + 1)) from(next, block);
      if (place > source(round + 1) || round == graph.rounds_) return;
      last = next;
      found[round++] = block;
      open &= ~(std::uint64_t{1} << block);
    }
  }
};

Circulant::Circulant(int size) : size_(size) {
  for (int rest = size; rest > 1; rest -= rest / 2) ++rounds_;
  jumps_[rounds_] = size;
  for (int i = rounds_; i > 0; --i) jumps_[i - 1] = jumps_[i] - jumps_[i] / 2;
}

Circulant::Arrival Circulant::arrival(int place, int block, int blocks) const {
  int base = rounds_;
  for (int k = rounds_ - 1, rest = place; k >= 0 && rest > 0; --k) {
    if (jumps_[k] > rest) continue;
    rest -= jumps_[k];
    base = k;
  }
  Search search{*this, std::int64_t{size_} + place, ((std::uint64_t{2} << rounds_) - 1) & ~(std::uint64_t{1} << base),
                std::int64_t{2} * size_};
  search.from(0, search.below(rounds_ + 1));
  // The first phase begins so late that the last one is complete.
  const int late = (rounds_ - (blocks - 1) % rounds_) % rounds_;
  Arrival first{-1, 0};
  for (int k = 0; k < rounds_; ++k) {
    const int in_phase = search.found[k] == rounds_ ? base : search.found[k] - rounds_;
    const int ahead = block + late - in_phase;
    if (block < blocks - 1 && ahead % rounds_ != 0) continue;
    // Blocks behind the last stand for the last.
    const int round = k + (ahead + rounds_ - 1) / rounds_ * rounds_ - late;
    if (first.round < 0 || round < first.round) first = {round, k};
  }
  return first;
}

}  // namespace stretto::coll
