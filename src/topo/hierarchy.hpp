// SPDX-License-Identifier: BSD-3-Clause
// Groups of ranks on every level. On the lowest level a group holds the ranks of one domain. On a
// higher level it holds the leaders of those groups below that are in one domain. On top one group
// holds the leaders of all groups below. A group's leader is its lowest rank, or the lowest of the
// ranks nearest to a network card, where that is known. The root of a call leads every group that
// it is in.
//
// Where network cards are known, a group also has carriers, so that its vectors may leave it by all
// cards at once. Each card that is nearest to some of the group's ranks has one carrier. It is the
// nearest of these ranks, and of several the lowest.
//
// Groups form a tree that does not depend on the root. For a given root, a group's members are the
// representatives of its children: the root for the child that holds it, the leader for any other
// child. A communicator therefore keeps one tree of O(P) groups. A call finds its own groups in a
// time that grows with the number of their members. Making the tree takes O(P) steps for each
// level.
//
// After Kurnosov 2023 (groups of processes on the levels of memory and network, without
// sub-communicators).
#pragma once
#include <span>

#include "topo/levels.hpp"
#include "topo/placement.hpp"

namespace stretto::topo {

class Hierarchy {
 public:
  // Builds the tree and leaves out levels that split nothing. False: no memory.
  bool build(const Placement& placement, const LevelChoice& choice = {});

  [[nodiscard]] int ranks() const { return ranks_; }
  // The number of levels, the top included; 1 if there is no hierarchy.
  [[nodiscard]] int levels() const { return levels_; }
  [[nodiscard]] const LevelName& name(int level) const { return names_[level]; }

  // The group of a level that holds a rank, as a member or below a member.
  [[nodiscard]] int group_over(int rank, int level) const;
  [[nodiscard]] int leader(int group) const { return groups_[group].leader; }
  [[nodiscard]] int leader(int group, int root) const { return has(group, root) ? root : groups_[group].leader; }
  [[nodiscard]] bool has(int group, int rank) const {
    const int at = position_[rank];
    return at >= groups_[group].order_begin && at < groups_[group].order_begin + groups_[group].ranks;
  }
  // A rank on level 0, a group on higher levels.
  [[nodiscard]] int child(int group, int i) const { return children_[groups_[group].first_child + i]; }
  // Whether a rank is itself a member of its group on a level, under this root.
  [[nodiscard]] bool is_member(int rank, int level, int root) const {
    return level == 0 || leader(group_over(rank, level - 1), root) == rank;
  }
  [[nodiscard]] int members(int group) const { return groups_[group].children; }
  [[nodiscard]] int member(int group, int i, int root) const {
    return groups_[group].level == 0 ? child(group, i) : leader(child(group, i), root);
  }
  [[nodiscard]] bool knows_cards() const { return !nearest_.empty(); }
  // The number of a group's carriers, at least one. Where no card is known, its leader is the
  // carrier.
  [[nodiscard]] int carriers(int group) const { return groups_[group].carriers; }
  [[nodiscard]] int carrier(int group, int i) const { return carriers_[groups_[group].first_carrier + i].rank; }
  // The number of the carrier that stands for a rank of the group: the rank itself, or else a
  // carrier with a card that is nearest to the rank.
  [[nodiscard]] int place_among_carriers(int group, int rank) const;
  // How many ranks are below a group, and below one of its members.
  [[nodiscard]] int under(int group) const { return groups_[group].ranks; }
  [[nodiscard]] int under_member(int group, int i) const {
    return groups_[group].level == 0 ? 1 : groups_[children_[groups_[group].first_child + i]].ranks;
  }
  // The ranks in the order of the tree, in which the ranks below any group are neighbours.
  // order_begin() says where those below a group begin.
  [[nodiscard]] std::span<const int> order() const { return {order_.data(), order_.size()}; }
  [[nodiscard]] int order_begin(int group) const { return groups_[group].order_begin; }
  [[nodiscard]] int position(int rank) const { return position_[rank]; }
  // Whether the order of the tree is that of the ranks. Groups then consist of neighbours on every
  // level.
  [[nodiscard]] bool keeps_rank_order() const { return keeps_rank_order_; }
  // Whether repeated halving of the tree's order never cuts a group that is no longer than a half.
  // That holds when the number of ranks is a power of two and the groups of each level are alike.
  [[nodiscard]] bool splits_in_halves() const;
  [[nodiscard]] int groups_on(int level) const { return first_group_[level + 1] - first_group_[level]; }
  [[nodiscard]] int group_on(int level, int i) const { return first_group_[level] + i; }

 private:
  struct Group {
    int level;
    int parent;  // -1: the top
    int lowest;  // rank
    int leader;  // unless the root is in the group
    int first_child, children;
    int ranks;
    int order_begin;
    int first_carrier, carriers;
  };
  struct Carrier {
    int rank;
    std::uint32_t card;  // its bit; 0: no card is known
  };

  bool choose_levels(const Placement& placement, const LevelChoice& choice, Placement* chosen);
  bool split_level(Placement* chosen, int level, int parts, int at_most);
  bool number_groups(const Placement& chosen, Array<int>* group_of, int* groups_on_level);
  bool make_groups(const Array<int>& group_of, const Placement& chosen, const int* groups_on_level,
                   const Array<sys::NicPlace>& nics);
  bool make_order();
  bool make_carriers(const Array<sys::NicPlace>& nics);
  [[nodiscard]] int nearest(const Group& group, std::uint32_t card, const Array<sys::NicPlace>& nics) const;

  int ranks_ = 0;
  int levels_ = 0;
  LevelName names_[kMostLevels + 1];
  int first_group_[kMostLevels + 2] = {};
  Array<Group> groups_;      // by level, lowest first; within a level by lowest rank
  Array<int> children_;      // ranks on level 0, groups above; ascending by lowest rank
  Array<int> lowest_group_;  // by rank
  Array<int> order_, position_;
  Array<Carrier> carriers_;       // by group
  Array<std::uint32_t> nearest_;  // cards of each rank; empty: no card is known
  bool keeps_rank_order_ = true;
};

// Two hierarchies. `all` has all levels. `nodes` has nodes alone, without the levels above and
// below, unless the user has said which levels there are to be.
struct Hierarchies {
  Hierarchy all, nodes;
  // False: no memory.
  bool build(const Placement& placement, const LevelChoice& choice = {});

  // Whether no level between nodes and the top splits the nodes.
  [[nodiscard]] bool one_switch() const;
  // Hierarchy::splits_in_halves for the nodes' leaders in their order: their number is a power of
  // two, and each level's groups hold equally many.
  [[nodiscard]] bool nodes_split_in_halves() const;

 private:
  [[nodiscard]] int node_count() const;
  [[nodiscard]] int node_leader(int i) const;
  // How many consecutive nodes every group of a level holds; 0 if they do not hold equally many.
  [[nodiscard]] int nodes_in_each_group(int level) const;
};

}  // namespace stretto::topo
