// SPDX-License-Identifier: BSD-3-Clause
#include "base/neighborhood.hpp"

#include <algorithm>
#include <tuple>

namespace stretto {
namespace {

// The block that arrives as number `order` if all neighbours are the same rank.
int block_at(int order, bool swapped) { return swapped ? order ^ 1 : order; }

}  // namespace

bool Neighborhood::Side::fill(int self, std::span<const int> peers, bool swapped) {
  edges.clear();
  begins.clear();
  for (int order = 0; order < static_cast<int>(peers.size()); ++order) {
    const int block = block_at(order, swapped), peer = peers[block];
    if (peer != kNobody && peer != self) edges.push({peer, block, 0, order});
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::tie(a.peer, a.order) < std::tie(b.peer, b.order); });
  for (std::size_t i = 1; i < edges.size(); ++i) {
    if (edges[i].peer == edges[i - 1].peer) edges[i].turn = edges[i - 1].turn + 1;
  }
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::tie(a.turn, a.order) < std::tie(b.turn, b.order); });
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i == 0 || edges[i].turn != edges[i - 1].turn) begins.push(static_cast<int>(i));
  }
  begins.push(static_cast<int>(edges.size()));
  return !edges.failed() && !begins.failed();
}

bool Neighborhood::fill(int self, std::span<const int> sources, std::span<const int> destinations, bool is_grid) {
  sources_ = static_cast<int>(sources.size());
  destinations_ = static_cast<int>(destinations.size());
  lacks_sources_ = std::find(sources.begin(), sources.end(), kNobody) != sources.end();
  own_.clear();
  int arrived = 0;
  for (int block = 0; block < destinations_; ++block) {
    if (destinations[block] != self) continue;
    while (arrived < sources_ && sources[block_at(arrived, is_grid)] != self) ++arrived;
    if (arrived == sources_) break;  // the program's graphs of the two directions differ
    own_.push({block, block_at(arrived++, is_grid)});
  }
  return out_.fill(self, destinations, false) && in_.fill(self, sources, is_grid) && !own_.failed();
}

}  // namespace stretto
