// SPDX-License-Identifier: BSD-3-Clause
// The ranks of one node in groups of a few, level by level. A plan says which levels there are. On
// the lowest level a group holds ranks that share an L3 cache. On a higher level it joins groups of
// one domain: a NUMA node, a socket, at last the node. (hierarchy.hpp has levels of several nodes.)
//
// A rank is in a group of each level with one rank of each group that is joined. Which ones meet
// depends on the plan:
//
//   tiers   the first ranks of the groups: what a group has goes through its leader
//   rails   the ranks with the same number in their groups: each carries its slice of the data
//
// So the tier of two groups is also their first rail. Rails need groups of about the same size:
// there are as many as the smallest group of the level has members.
//
// A domain with more ranks than a group may have is split into parts of neighbouring ranks. A level
// that joins nothing is left out. Ranks that are bound to no domain are as in one of their own. All
// ranks compute from the same bindings, so all find the same groups.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "sys/sys.hpp"
#include "topo/locality.hpp"

namespace stretto::topo {

// The domains that a rank is bound to, from the inside out.
struct Binding {
  static constexpr int kLevels = 3;  // L3 cache, NUMA node, socket
  static constexpr int kL3 = 0, kNuma = 1, kSocket = 2;
  static constexpr std::int32_t kNowhere = -1;
  std::int32_t domains[kLevels] = {kNowhere, kNowhere, kNowhere};
};
Binding binding_of(const sys::CpuPlace& place);
Binding binding_of(const Locality& locality);

// Which levels make groups: bits of Binding's, below the node.
struct Plan {
  unsigned levels;
  bool rails = false;
  // A level above the lowest is left out if one group of the node can join all.
  bool few = false;
  int most_ranks = 8;  // of a lowest group; a higher group of tiers joins at most twice as many

  [[nodiscard]] Plan at_most(int ranks) const { return {levels, rails, few, ranks}; }
};
inline constexpr Plan kShortPlan{1u << Binding::kL3 | 1u << Binding::kSocket, false, true};
inline constexpr Plan kLongPlan{1u << Binding::kL3 | 1u << Binding::kNuma | 1u << Binding::kSocket};
inline constexpr Plan kRailsPlan{1u << Binding::kL3 | 1u << Binding::kSocket, true};

// A group that a rank is in.
struct Group {
  int level = 0;
  int index = 0;       // of the rank among the members; 0: it leads the group
  Array<int> members;  // in the order of the groups that are joined, which is that of their lowest ranks
  // Of rails: where in Groups::order() each slice begins; the last number is where they end.
  Array<int> cuts;
  // Of rails: how many ranks the members before each one stand for; the last number is of all.
  Array<int> origins;

  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
};

class Groups {
 public:
  static constexpr int kMostLevels = 4;
  static constexpr int kMostRanks = 8, kMostLeaders = 2 * kMostRanks;  // of a group of tiers

  // Finds the groups of `rank`, where rank r is bound as `bindings[r]` says. Null: no rank is
  // bound. False: no memory, or more levels than kMostLevels.
  bool find(int rank, int ranks, const Binding* bindings, const Plan& plan);

  // The groups that this rank is in, the lowest first. In tiers it is in those that it leads, and
  // in one more. In rails it is in those in which it has a slice, and in one more.
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] const Group& operator[](int i) const { return groups_[i]; }
  // How many of them it is in as a leader, and one more.
  [[nodiscard]] int tiers() const {
    int tiers = 1;
    while (tiers < count_ && groups_[tiers - 1].index == 0) ++tiers;
    return tiers < count_ ? tiers : count_;
  }
  [[nodiscard]] int height() const { return height_; }
  // Whether the group joins all ranks of the node.
  [[nodiscard]] bool has_all(const Group& group) const { return group.level + 1 == height_; }
  // The member of this rank's group that stands for `rank`. -1: it is in another group.
  [[nodiscard]] int member_over(const Group& group, int rank) const {
    const Level& level = levels_[group.level];
    return level.group[at(rank)] == level.group[at(rank_)] ? level.index[at(rank)] : -1;
  }
  // Whether each group has neighbouring ranks, below all of its members, in rank order.
  [[nodiscard]] bool keep_rank_order() const { return keep_rank_order_; }
  [[nodiscard]] bool span_sockets() const { return span_sockets_; }
  // Whether an L3 cache has more ranks than a lowest group may have.
  [[nodiscard]] bool split_caches() const { return split_caches_; }

  // ---- Rails ----
  // How many members of each group of a level have a slice.
  [[nodiscard]] int slices(int level) const { return levels_[level].slices; }
  // The number of the member that stands for that rank in its group of a level.
  [[nodiscard]] int number(int level, int rank) const { return levels_[level].index[at(rank)]; }
  // Whether that rank's group on the lowest level is on rails of all levels.
  [[nodiscard]] bool on_rails(int rank) const {
    for (int l = 1; l + 1 < height_; ++l) {
      if (levels_[l].index[at(rank)] >= levels_[l].slices) return false;
    }
    return true;
  }
  // Whether all ranks are on rails of all levels.
  [[nodiscard]] bool all_on_rails() const { return all_on_rails_; }
  // All ranks in an order in which those that one slice serves are neighbours, on each level.
  [[nodiscard]] const Array<int>& order() const { return order_; }
  // All ranks in an order in which those that one member stands for are neighbours, on each level.
  [[nodiscard]] const Array<int>& places() const { return places_; }
  // Where in order() those begin and end that this rank's slice of the highest level serves. Mostly
  // it is this rank alone. A rank without such a slice serves none.
  [[nodiscard]] int served_from() const { return served_from_; }
  [[nodiscard]] int served_to() const { return served_to_; }
  // Who serves this rank.
  [[nodiscard]] int server() const { return server_; }

 private:
  struct Level {
    Array<std::uint16_t> group, index;  // by rank: which group it is below, and below which member
    int slices = 0;
  };
  struct Finding;

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  bool add_level(Finding& finding, int domains);
  bool join(Finding& finding, const Array<std::uint16_t>& group_of, int groups, int slices);
  bool find_order(int ranks);
  bool find_places(int ranks);
  [[nodiscard]] int slice_of(int level, int rank) const {
    const int index = levels_[level].index[at(rank)];
    return level + 1 < height_ ? index % levels_[level].slices : index;
  }

  int rank_ = 0;
  int count_ = 0;
  int height_ = 0;
  bool keep_rank_order_ = true;
  bool span_sockets_ = false, split_caches_ = false;
  bool all_on_rails_ = true;
  Group groups_[kMostLevels];
  Level levels_[kMostLevels];
  Array<int> order_, places_;
  int served_from_ = 0, served_to_ = 0, server_ = 0;
};

}  // namespace stretto::topo
