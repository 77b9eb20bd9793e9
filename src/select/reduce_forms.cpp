// SPDX-License-Identifier: BSD-3-Clause
#include "select/reduce_forms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <queue>

namespace stretto::select {
namespace {

int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
bool is_power(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
int ranks_under(int ranks, int rank) { return std::min(rank & -rank, ranks - rank); }

// When a place over n places has received all. It receives the full subtrees under it. Where n is
// no power of two, it also receives a rest that was ready before.
double gathered(const LogP& p, int n) {
  return p.copy + floor_log2(n) * (p.o + p.L + p.turn()) + (is_power(n) ? 0 : p.turn());
}
// The same for a root, which has nothing to do after its last combination.
double finished(const LogP& p, int n) {
  const int full = floor_log2(n);
  if (n == 1) return p.copy;
  if (is_power(n)) return p.copy + (full - 1) * (p.o + p.L + p.turn()) + p.hop();
  return p.copy + full * (p.o + p.L + p.turn()) + p.o + p.combine;
}
// A combination and the copy of its result, as one.
LogP ordered(LogP p) {
  p.combine += p.copy;
  return p;
}

}  // namespace

double binomial_rank(const LogP& p, int ranks, int rank) {
  return rank == 0 ? binomial_root(p, ranks) : gathered(p, ranks_under(ranks, rank)) + p.o;
}
double binomial_root(const LogP& p, int ranks) { return finished(p, ranks); }

double binomial_rank_ordered(const LogP& p, int ranks, int rank) { return binomial_rank(ordered(p), ranks, rank); }
double binomial_root_ordered(const LogP& p, int ranks, bool root_is_0) {
  return finished(ordered(p), ranks) + (root_is_0 ? 0 : 2 * p.o + p.L);
}

double binary_root(const LogP& p, int ranks, bool root_is_last) {
  const int levels = floor_log2(ranks);
  const double handed_on = root_is_last ? 0 : 2 * p.o + p.L;
  if (levels == 0) return p.copy + handed_on;
  return std::max(p.o + p.L, p.copy) + levels * (p.turn() + p.o + p.combine) + (levels - 1) * (p.o + p.L) + handed_on;
}

double kchain_root(const LogP& p, int ranks, int k, bool long_first) {
  const int shortest = (ranks - 1) / k;
  const int longer = (ranks - 1) % k;
  const double a = p.hop();
  const double turns = (k - 1) * p.turn();
  if (longer == 0) return (shortest - 1) * a + turns + a;
  if (long_first) return shortest * a + turns + a;
  return std::max((shortest - 1) * a + turns, shortest * a + (longer - 1) * p.turn()) + a;
}
double kchain_rank(const LogP& p, int below) { return below * p.hop() + p.o; }

double kchain_estimate(double a, double b, int ranks, double k) { return ((ranks - 1) / k + 1) * a + (k - 1) * b; }
double kchain_estimate_best_k(double a, double b, int ranks) { return std::sqrt(a * (ranks - 1) / b); }
double kchain_estimate_least(double a, double b, int ranks) { return 2 * std::sqrt(a * b * (ranks - 1)) + a - b; }

int kchain_estimate_best_whole_k(double a, double b, int ranks) {
  // The estimate is convex in k.
  const int below = std::clamp(static_cast<int>(kchain_estimate_best_k(a, b, ranks)), 1, std::max(1, ranks - 1));
  const int above = std::min(below + 1, std::max(1, ranks - 1));
  return kchain_estimate(a, b, ranks, above) < kchain_estimate(a, b, ranks, below) ? above : below;
}

int kchain_practical_k(int ranks) {
  int k = 1;
  while (static_cast<std::int64_t>(k) * k < ranks - 1) ++k;
  return k;
}

int kchain_best_k(const LogP& p, int ranks) {
  int best = 1;
  for (int k = 2; k < ranks; ++k) {
    if (kchain_root(p, ranks, k) < kchain_root(p, ranks, best)) best = k;
  }
  return best;
}

Staggered staggered_chains(const LogP& p, int ranks) {
  struct Next {
    double time;
    int chain;  // counted from the one that is received last
    bool operator<(const Next& other) const { return time != other.time ? time > other.time : chain > other.chain; }
  };
  Staggered result;
  std::priority_queue<Next> candidates;
  candidates.push({p.hop(), 0});
  for (int rank = 1; rank < ranks; ++rank) {
    const Next next = candidates.top();
    candidates.pop();
    result.time = next.time;
    candidates.push({next.time + p.hop(), next.chain});
    // The first rank of a chain that is received still earlier.
    if (next.chain == static_cast<int>(result.lengths.size())) {
      result.lengths.push_back(0);
      candidates.push({p.hop() + (next.chain + 1) * p.turn(), next.chain + 1});
    }
    ++result.lengths[static_cast<std::size_t>(next.chain)];
  }
  std::reverse(result.lengths.begin(), result.lengths.end());
  return result;
}

}  // namespace stretto::select
