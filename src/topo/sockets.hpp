// SPDX-License-Identifier: BSD-3-Clause
// The ranks of one node by socket, for long messages. A message is cut into as many slices as the
// smallest socket has ranks. The ranks with the same number within their sockets have the same
// slice, so that each slice crosses from socket to socket once. All ranks find the same.
#pragma once
#include "base/array.hpp"
#include "topo/tiers.hpp"

namespace stretto::topo {

class Sockets {
 public:
  static constexpr int kMost = Tier::kMostMembers;
  static constexpr int kLeastRanks = 2;  // of a socket

  // True: all ranks are bound to a socket, and there are two to kMost of them. Each has at least
  // kLeastRanks ranks, and half as many as any other: few ranks with slices would combine for long.
  // Ends the process if there is no memory for a few words.
  bool find(int rank, int ranks, const Binding* bindings);

  // The ranks of this rank's socket, in rank order, and its number there.
  [[nodiscard]] const Array<int>& inside() const { return inside_; }
  [[nodiscard]] int index() const { return index_; }
  // The ranks with this one's slice, and its number among them. Empty: this rank has no slice.
  [[nodiscard]] const Array<int>& across() const { return across_; }
  [[nodiscard]] int socket() const { return socket_; }
  [[nodiscard]] int slices() const { return slices_; }
  // Whether each socket has neighbouring ranks.
  [[nodiscard]] bool keep_rank_order() const { return keep_rank_order_; }

 private:
  Array<int> inside_, across_;
  int index_ = 0, socket_ = 0, slices_ = 0;
  bool keep_rank_order_ = true;
};

}  // namespace stretto::topo
