// SPDX-License-Identifier: BSD-3-Clause
// Trees over places 0 to size - 1. Every subtree holds neighbouring places. So a reduction up the
// tree keeps their order, and a gather moves neighbouring parts.
//
//   k-nomial  root 0. A place's parent has the place's lowest digit that is not 0, to base k, set
//             to 0. k = 2: binomial; k >= size: flat. Depth ceil(log_k size); the root has
//             (k - 1) times as many children.
//   k-chain   root 0 heads k chains of neighbours, whose lengths differ by at most one.
//             k = 1: chain; k >= size - 1: flat.
//   binary    root size - 1. The lower half of the others is one subtree, the rest the other,
//             each with its last place as root. In-order, balanced: depth floor(log2 size).
//
// Children come in the order in which a reduction takes them, nearest places first. What is sent
// down goes in the reverse order, so that the biggest subtree is served first.
#pragma once
#include <cstdint>

#include "sched/schedule.hpp"

namespace stretto::coll {

struct Tree {
  enum class Kind : std::uint8_t { knomial, kchain, binary };
  Kind kind = Kind::knomial;
  int size = 1;
  int k = 2;
  // k-chain: the longer chains come first; otherwise they come last, when they are ready.
  bool long_first = false;

  static Tree knomial(int size, int k) { return {Kind::knomial, size, k < 2 ? 2 : k, false}; }
  static Tree flat(int size) { return knomial(size, size); }
  // k < 1: the practical rule, ceil(sqrt(size - 1)).
  static Tree kchain(int size, int k, bool long_first = false);
  static Tree binary(int size) { return {Kind::binary, size, 2, false}; }

  [[nodiscard]] int root() const { return kind == Kind::binary ? size - 1 : 0; }
  // On which side of a place's own contribution its children's contributions stand.
  [[nodiscard]] sched::Side children_side() const {
    return kind == Kind::binary ? sched::Side::left : sched::Side::right;
  }
  [[nodiscard]] int parent(int place) const;  // -1: the root
  // One past the last place of the subtree under a k-nomial tree's place. `place` is its first.
  [[nodiscard]] int subtree_end(int place) const;

  template <class Visit>
  void each_child(int place, Visit visit) const {
    switch (kind) {
      case Kind::knomial: return knomial_children(place, visit);
      case Kind::kchain: return kchain_children(place, visit, false);
      case Kind::binary: return binary_children(place, visit, false);
    }
  }
  template <class Visit>
  void each_child_backwards(int place, Visit visit) const {
    switch (kind) {
      case Kind::knomial: return knomial_children_backwards(place, visit);
      case Kind::kchain: return kchain_children(place, visit, true);
      case Kind::binary: return binary_children(place, visit, true);
    }
  }

 private:
  struct Binary {
    int near, far;  // children; -1: none
    int parent;
  };
  // Of the lowest digit that is not 0; of the root: a power of k that is at least size.
  [[nodiscard]] std::int64_t weight(int place) const;
  [[nodiscard]] int chain_begin(int chain) const;
  [[nodiscard]] int chain_of(int place) const;
  [[nodiscard]] Binary binary_node(int place) const;

  template <class Visit>
  void knomial_children(int place, Visit visit) const {
    const std::int64_t end = weight(place);
    for (std::int64_t w = 1; w < end; w *= k) {
      for (std::int64_t child = place + w; child < place + k * w; child += w) {
        if (child >= size) return;
        visit(static_cast<int>(child));
      }
    }
  }
  template <class Visit>
  void knomial_children_backwards(int place, Visit visit) const {
    for (std::int64_t w = weight(place) / k; w >= 1; w /= k) {
      std::int64_t most = (size - 1 - place) / w;
      if (most > k - 1) most = k - 1;
      for (std::int64_t digit = most; digit >= 1; --digit) visit(static_cast<int>(place + digit * w));
    }
  }
  template <class Visit>
  void kchain_children(int place, Visit visit, bool backwards) const {
    if (place != 0) {
      if (place + 1 < size && chain_of(place + 1) == chain_of(place)) visit(place + 1);
      return;
    }
    for (int i = 0; i < k && size > 1; ++i) visit(chain_begin(backwards ? k - 1 - i : i));
  }
  template <class Visit>
  void binary_children(int place, Visit visit, bool backwards) const {
    const Binary node = binary_node(place);
    const int first = backwards ? node.far : node.near;
    const int second = backwards ? node.near : node.far;
    if (first >= 0) visit(first);
    if (second >= 0) visit(second);
  }
};

}  // namespace stretto::coll
