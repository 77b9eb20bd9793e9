// SPDX-License-Identifier: BSD-3-Clause
// Whom one rank sends to, and from whom it receives, in neighbourhood collectives: its part of the
// graph that MPI calls the topology of a communicator.
//
// MPI numbers a rank's blocks by its neighbours: block k goes to destination k, and what source k
// sends arrives in block k. A neighbour may be there several times, and may be the rank itself.
//
// Messages of one pair of ranks arrive in the order in which they are sent, which is the order of
// the sender's blocks. Which block each of them belongs to follows from the kind of the graph
// (MPI-4.1, section 8.6):
//
//   a graph   the n-th edge of the sender to the receiver is the receiver's n-th edge from it
//   a grid    block 2d goes down in dimension d, and arrives as what comes from above, in block
//             2d + 1; block 2d + 1 arrives in block 2d. That also holds where both neighbours are
//             the same rank: in periodic dimensions of one or two ranks
#pragma once
#include <span>

#include "base/array.hpp"

namespace stretto {

class Neighborhood {
 public:
  static constexpr int kNobody = -1;  // the neighbour beyond an open end of a grid

  // A message of a call to or from a neighbour that is another rank.
  struct Edge {
    int peer;
    int block;
    int turn;   // n: the n-th of its pair and direction
    int order;  // of its arrival, among the messages that come
  };
  // A block that this rank sends to itself.
  struct Own {
    int from, to;
  };
  // The messages of one turn: at most one to each peer, and one from each.
  struct Turn {
    std::span<const Edge> out, in;
  };

  // What rank `self` names as its neighbours. Returns false if there is no memory.
  bool fill(int self, std::span<const int> sources, std::span<const int> destinations, bool is_grid);

  // How many blocks this rank receives and sends, those of kNobody too.
  [[nodiscard]] int sources() const { return sources_; }
  [[nodiscard]] int destinations() const { return destinations_; }
  [[nodiscard]] bool lacks_sources() const { return lacks_sources_; }  // some source is kNobody
  // Whether this rank exchanges any block.
  [[nodiscard]] bool sends() const { return out_.edges.size() + own_.size() != 0; }
  [[nodiscard]] bool receives() const { return in_.edges.size() + own_.size() != 0; }

  [[nodiscard]] std::span<const Own> own() const { return {own_.data(), own_.size()}; }
  [[nodiscard]] int turns() const { return out_.turns() > in_.turns() ? out_.turns() : in_.turns(); }
  [[nodiscard]] Turn turn(int n) const { return {out_.of(n), in_.of(n)}; }

 private:
  // The messages of one direction by their turns.
  struct Side {
    Array<Edge> edges;
    Array<int> begins;  // of each turn, and the end of the last

    bool fill(int self, std::span<const int> peers, bool swapped);
    [[nodiscard]] int turns() const { return static_cast<int>(begins.size()) - 1; }
    [[nodiscard]] std::span<const Edge> of(int turn) const {
      if (turn >= turns()) return {};
      return {edges.data() + begins[turn], static_cast<std::size_t>(begins[turn + 1] - begins[turn])};
    }
  };

  int sources_ = 0, destinations_ = 0;
  bool lacks_sources_ = false;
  Side out_, in_;
  Array<Own> own_;
};

}  // namespace stretto
