// SPDX-License-Identifier: BSD-3-Clause
// Tiers: the ranks of one node in groups of a few, which share a cache where they can. The ranks of
// an L3 cache are a group. The lowest rank of a group leads it. The leaders of the caches of a NUMA
// node are a group again, then those of a socket, then those of the node. So each rank is in a
// chain of tiers, from the lowest up, as far as it leads.
//
// A domain with more ranks than a group may have is split into parts of neighbouring ranks. A level
// that brings no two leaders together adds no tier. Ranks that are bound to no domain meet on the
// level of the node, in groups by rank.
//
// All ranks compute from the same bindings, so all find the same groups.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "sys/sys.hpp"
#include "topo/locality.hpp"

namespace stretto::topo {

// The domains that a rank is bound to, from the inside out.
struct Binding {
  static constexpr int kLevels = 3;  // L3 cache, NUMA node, socket
  static constexpr std::int32_t kNowhere = -1;
  std::int32_t domains[kLevels] = {kNowhere, kNowhere, kNowhere};
};
Binding binding_of(const sys::CpuPlace& place);
Binding binding_of(const Locality& locality);

// A group that a rank is in.
struct Tier {
  static constexpr int kMostMembers = 16, kMostRanks = kMostMembers / 2;  // of leaders, of ranks
  static constexpr std::uint8_t kNobody = 0xff;
  int level = 0;  // how many levels of groups there are below this one
  int size = 0;
  int index = 0;                // of the rank among the members; 0: it leads the group
  int members[kMostMembers]{};  // in rank order; each leads the ranks below it
  bool has_all = false;         // each rank of the node is below one of them
  Array<std::uint8_t> over;     // by rank: the member that it is below; kNobody: it is in another group

  // The member that leads `rank`. -1: it is in another group.
  [[nodiscard]] int member_over(int rank) const {
    const std::uint8_t member = over[static_cast<std::size_t>(rank)];
    return member == kNobody ? -1 : member;
  }
};

class Tiers {
 public:
  static constexpr int kMost = 4;

  // Finds the tiers of `rank`, where rank r is bound as `bindings[r]` says; null: no rank is bound.
  // A group of ranks has at most `most_members`, and a group of leaders twice as many. False: no
  // memory, or more levels than kMost.
  bool find(int rank, int ranks, const Binding* bindings, int most_members);

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] const Tier& operator[](int i) const { return tiers_[i]; }
  // Levels that have groups. A rank may be alone on some of them.
  [[nodiscard]] int height() const { return height_; }
  // Whether each group of the node has neighbouring ranks, below all of its members.
  [[nodiscard]] bool keep_rank_order() const { return keep_rank_order_; }
  // Whether ranks are bound to different sockets.
  [[nodiscard]] bool span_sockets() const { return span_sockets_; }

 private:
  template <class DomainOf>
  bool add_level(int rank, int most_members, DomainOf domain_of);
  bool join(int rank, const int* members, int size);

  int count_ = 0;
  int height_ = 0;
  bool keep_rank_order_ = true;
  bool span_sockets_ = false;
  Tier tiers_[kMost];
  Array<int> leaders_;  // by rank: who leads its group on the level below
};

}  // namespace stretto::topo
