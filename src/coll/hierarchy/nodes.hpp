// SPDX-License-Identifier: BSD-3-Clause
// The nodes of an Alltoall, this rank's place on its own one, and who carries what between nodes.
//
// Each rank of a node is the carrier for some of the other nodes (alltoall.cpp). In an Alltoallv a
// rank knows the lengths of its own blocks only, at both of their ends. So the ranks of a node
// first tell each carrier how long their blocks to and from its nodes are. Then both carriers of
// two nodes know the length of each block between these nodes, as MPI wants both ends of a block to
// give the same. What a rank tells a carrier is, for each of the carrier's nodes, a word for each
// rank there: what goes to it. The same number of words follows: what comes from it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "topo/hierarchy.hpp"

namespace stretto::coll {

class Nodes {
 public:
  struct Node {
    int number, begin, size;
  };

  Nodes(const topo::Hierarchy& hierarchy, int node_level, int rank)
      : hierarchy_(hierarchy),
        node_level_(node_level),
        count_(hierarchy.groups_on(node_level)),
        home_(node(hierarchy.group_over(rank, node_level) - hierarchy.group_on(node_level, 0))),
        me_(hierarchy.position(rank) - home_.begin) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] const Node& home() const { return home_; }
  [[nodiscard]] int me() const { return me_; }  // among the ranks of the node
  [[nodiscard]] Node node(int number) const {
    const int group = hierarchy_.group_on(node_level_, number);
    return {number, hierarchy_.order_begin(group), hierarchy_.under(group)};
  }
  [[nodiscard]] Node before(int distance) const { return node((home_.number + count_ - distance) % count_); }
  [[nodiscard]] Node behind(int distance) const { return node((home_.number + distance) % count_); }
  [[nodiscard]] int rank(const Node& n, int i) const {
    return hierarchy_.order()[static_cast<std::size_t>(n.begin + i)];
  }
  // Whether its ranks are numbered one after the other.
  [[nodiscard]] bool has_neighbours(const Node& n) const {
    for (int i = 1; i < n.size; ++i) {
      if (rank(n, i) != rank(n, 0) + i) return false;
    }
    return true;
  }

  // Which rank of node `at` is the carrier for traffic with node `other`.
  [[nodiscard]] static int carrier(const Node& at, const Node& other) { return other.number % at.size; }
  // All other nodes, beginning with the next one.
  template <class Visit>
  void each_other(Visit visit) const {
    for (int distance = 1; distance < count_; ++distance) visit(behind(distance));
  }
  // Those of them that a rank of this node carries for.
  template <class Visit>
  void each_carried(int by, Visit visit) const {
    each_other([&](const Node& other) {
      if (carrier(home_, other) == by) visit(other);
    });
  }

  // How many words each rank of the node tells this carrier.
  [[nodiscard]] std::size_t words_told(int carrier) const {
    std::size_t words = 0;
    each_carried(carrier, [&](const Node& other) { words += 2 * static_cast<std::size_t>(other.size); });
    return words;
  }
  // Writes what a rank tells a carrier. `sent` and `received` have the lengths of its blocks, by
  // the rank at the other end. Returns the end of what is written.
  template <class Length>
  std::uint64_t* tell(int carrier, Length sent, Length received, std::uint64_t* words) const {
    each_carried(carrier, [&](const Node& other) {
      for (const Length& length : {sent, received}) {
        for (int i = 0; i < other.size; ++i) *words++ = length(rank(other, i));
      }
    });
    return words;
  }

 private:
  const topo::Hierarchy& hierarchy_;
  int node_level_;
  int count_;
  Node home_;
  int me_;
};

// One number for the lengths of all blocks from one node to another. The carrier of each of the two
// finds it from what its ranks have told: `words` begins with those of the first rank for the other
// node, and the next rank's are `of_each` words behind. Different lengths have different numbers,
// but for chance.
class LengthsDigest {
 public:
  static std::uint64_t sent(const Nodes::Node& from, const Nodes::Node& to, const std::uint64_t* words,
                            std::size_t of_each) {
    LengthsDigest digest;
    for (int i = 0; i < from.size; ++i) {
      for (int x = 0; x < to.size; ++x) digest.add(words[static_cast<std::size_t>(i) * of_each + x]);
    }
    return digest.value_;
  }
  static std::uint64_t received(const Nodes::Node& from, const Nodes::Node& to, const std::uint64_t* words,
                                std::size_t of_each) {
    LengthsDigest digest;
    for (int x = 0; x < from.size; ++x) {
      for (int i = 0; i < to.size; ++i) digest.add(words[static_cast<std::size_t>(i) * of_each + from.size + x]);
    }
    return digest.value_;
  }

 private:
  void add(std::uint64_t length) {
    value_ = (value_ ^ length) * 0x9e3779b97f4a7c15u;
    value_ ^= value_ >> 32;
  }
  std::uint64_t value_ = 1;
};

}  // namespace stretto::coll
