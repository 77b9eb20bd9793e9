// SPDX-License-Identifier: BSD-3-Clause
#include "topo/sockets.hpp"

#include <algorithm>
#include <cstdlib>

namespace stretto::topo {

bool Sockets::find(int rank, int ranks, const Binding* bindings) {
  const auto socket_of = [&](int r) { return bindings[r].domains[Binding::kLevels - 1]; };
  struct Socket {
    std::int32_t domain;
    int ranks;
  };
  Socket sockets[kMost];  // by their lowest ranks
  int count = 0, last = -1;
  Array<int> numbers;  // by rank: its number within its socket
  for (int r = 0; r < ranks; ++r) {
    if (socket_of(r) == Binding::kNowhere) return false;
    int at = 0;
    while (at < count && sockets[at].domain != socket_of(r)) ++at;
    if (at == kMost) return false;
    if (at == count) sockets[count++] = {socket_of(r), 0};
    keep_rank_order_ = keep_rank_order_ && at >= last;
    last = at;
    numbers.push(sockets[at].ranks++);
    if (socket_of(r) == socket_of(rank)) inside_.push(r);
    if (r == rank) socket_ = at;
  }
  if (numbers.failed() || inside_.failed()) std::abort();
  const auto fewer = [](const Socket& a, const Socket& b) { return a.ranks < b.ranks; };
  const auto [fewest, most] = std::minmax_element(sockets, sockets + count, fewer);
  slices_ = fewest->ranks;
  index_ = numbers[static_cast<std::size_t>(rank)];
  if (count < 2 || slices_ < kLeastRanks || 2 * slices_ < most->ranks) return false;
  if (index_ >= slices_) return true;
  for (int at = 0; at < count; ++at) {
    for (int r = 0; r < ranks; ++r) {
      if (socket_of(r) == sockets[at].domain && numbers[static_cast<std::size_t>(r)] == index_) across_.push(r);
    }
  }
  if (across_.failed()) std::abort();
  return true;
}

}  // namespace stretto::topo
