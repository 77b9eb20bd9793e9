// SPDX-License-Identifier: BSD-3-Clause
#include "topo/hierarchy.hpp"

#include <bit>

#include "topo/numbering.hpp"

namespace stretto::topo {
namespace {

std::size_t index(int level, int ranks, int rank) {
  return static_cast<std::size_t>(level) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
}

}  // namespace

// Numbers groups from the numbers of domains, from the top down. Two ranks share a group of a level
// if they share one of the level above and their domains have the same number. A rank that is
// nowhere gets a group of its own.
bool Hierarchy::number_groups(const Placement& chosen, Array<int>* group_of, int* groups_on_level) {
  const int ranks = chosen.ranks;
  group_of->clear();
  if (!group_of->resize(index(chosen.levels, ranks, 0), 0)) return false;
  Numbering numbers;
  for (int level = chosen.levels - 1; level >= 0; --level) {
    numbers.clear();
    for (int r = 0; r < ranks; ++r) {
      const int above = level + 1 < chosen.levels ? (*group_of)[index(level + 1, ranks, r)] : 0;
      const std::int32_t domain = chosen.at(level, r) >= 0 ? chosen.at(level, r) : -1 - r;
      (*group_of)[index(level, ranks, r)] = numbers.number(above, domain);
    }
    if (numbers.failed()) return false;
    groups_on_level[level] = numbers.count();
  }
  return true;
}

// Makes a new level below all others. It deals the ranks of every group of `level`, in order, to
// `parts` domains, or to as many as hold at most `at_most` each. False: no memory.
bool Hierarchy::split_level(Placement* chosen, int level, int parts, int at_most) {
  Array<int> group_of;
  int groups[kMostLevels];
  Array<int> size;
  Array<int> seen;
  if (!number_groups(*chosen, &group_of, groups) || !chosen->add_level("?")) return false;
  if (!size.resize(static_cast<std::size_t>(groups[level]), 0) ||
      !seen.resize(static_cast<std::size_t>(groups[level]), 0))
    return false;
  const int made = chosen->levels - 1;
  for (int r = 0; r < chosen->ranks; ++r) ++size[static_cast<std::size_t>(group_of[index(level, chosen->ranks, r)])];
  for (int r = 0; r < chosen->ranks; ++r) {
    const auto g = static_cast<std::size_t>(group_of[index(level, chosen->ranks, r)]);
    const std::int64_t pieces = at_most > 0 ? (size[g] + at_most - 1) / at_most : parts;
    chosen->at(made, r) = static_cast<std::int32_t>(seen[g]++ * pieces / size[g]);
  }
  return true;
}

// Takes the levels that the choice leaves on, with the parts that it wants below them. Then leaves
// out levels that split nothing.
bool Hierarchy::choose_levels(const Placement& placement, const LevelChoice& choice, Placement* chosen) {
  const auto copy_level = [&](const Placement& from, int level, Placement* to) {
    if (!to->add_level(from.names[level].text)) return false;
    for (int r = 0; r < from.ranks; ++r) to->at(to->levels - 1, r) = from.at(level, r);
    return true;
  };
  // Splitting needs the levels above. The levels are therefore made from the top down, and turned
  // over at the end.
  Placement down;
  down.start(placement.ranks);
  const auto turn = [&](const Placement& from, Placement* to) {
    to->start(from.ranks);
    for (int level = from.levels - 1; level >= 0; --level) {
      if (!copy_level(from, level, to)) return false;
    }
    return true;
  };
  const auto split_last = [&](int parts, int at_most, const char* name) {
    Placement up;
    if (!turn(down, &up)) return false;
    if (up.levels == 0) {  // without a level above, all ranks are in one domain
      if (!up.add_level("all")) return false;
      for (int r = 0; r < up.ranks; ++r) up.at(0, r) = 0;
    }
    if (!split_level(&up, 0, parts, at_most) || !down.add_level(name)) return false;
    for (int r = 0; r < up.ranks; ++r) down.at(down.levels - 1, r) = up.at(up.levels - 1, r);
    return true;
  };
  for (int level = placement.levels - 1; level >= 0; --level) {
    int parts;
    if (!choice.active(placement.names[level], &parts)) continue;
    if (!copy_level(placement, level, &down)) return false;
    if (parts > 1 && !split_last(parts, 0, "part")) return false;
  }
  if (choice.at_most > 0 && !split_last(0, choice.at_most, "few")) return false;

  Placement up;
  Array<int> group_of;
  int groups[kMostLevels];
  if (!turn(down, &up) || !number_groups(up, &group_of, groups)) return false;
  chosen->start(placement.ranks);
  int below = placement.ranks;  // how many members the level's groups have together
  for (int level = 0; level < up.levels; ++level) {
    if (groups[level] == below || groups[level] == 1) continue;
    below = groups[level];
    // The groups' numbers also hold without the levels that are left out.
    if (!chosen->add_level(up.names[level].text)) return false;
    for (int r = 0; r < up.ranks; ++r) chosen->at(chosen->levels - 1, r) = group_of[index(level, up.ranks, r)];
  }
  return true;
}

bool Hierarchy::make_groups(const Array<int>& group_of, const Placement& chosen, const int* groups_on_level,
                            const Array<sys::NicPlace>& nics) {
  levels_ = chosen.levels + 1;
  first_group_[0] = 0;
  for (int level = 0; level < levels_; ++level) {
    const bool top = level == chosen.levels;
    names_[level] = top ? LevelName{"top"} : chosen.names[level];
    first_group_[level + 1] = first_group_[level] + (top ? 1 : groups_on_level[level]);
  }
  groups_.clear();
  children_.clear();
  lowest_group_.clear();
  const auto all = static_cast<std::size_t>(first_group_[levels_]);
  const Group none{0, -1, -1, -1, 0, 0, 0, 0, 0, 0};
  if (!groups_.resize(all, none) || !children_.resize(static_cast<std::size_t>(ranks_) + all - 1, 0) ||
      !lowest_group_.resize(static_cast<std::size_t>(ranks_), 0)) {
    return false;
  }
  const auto group_at = [&](int level, int rank) {
    return first_group_[level] + (level == chosen.levels ? 0 : group_of[index(level, ranks_, rank)]);
  };
  // Ranks ascend, so the first rank that meets a group is its lowest.
  for (int r = 0; r < ranks_; ++r) {
    lowest_group_[r] = group_at(0, r);
    for (int level = 0; level < levels_; ++level) {
      Group& group = groups_[group_at(level, r)];
      group.level = level;
      ++group.ranks;
      if (level == 0) ++group.children;
      const bool nearer = !nics.empty() && group.leader >= 0 && nics[r].distance < nics[group.leader].distance;
      if (group.leader < 0 || nearer) group.leader = r;
      if (group.lowest >= 0) continue;
      group.lowest = r;
      if (level + 1 == levels_) continue;
      group.parent = group_at(level + 1, r);
      ++groups_[group.parent].children;
    }
  }
  int next = 0;
  for (Group& group : groups_) {
    group.first_child = next;
    next += group.children;
    group.children = 0;
  }
  const auto adopt = [&](int parent, int child) {
    Group& group = groups_[parent];
    children_[group.first_child + group.children++] = child;
  };
  for (int r = 0; r < ranks_; ++r) {
    adopt(lowest_group_[r], r);
    for (int g = lowest_group_[r]; groups_[g].lowest == r && groups_[g].parent >= 0; g = groups_[g].parent)
      adopt(groups_[g].parent, g);
  }
  return true;
}

bool Hierarchy::make_order() {
  order_.clear();
  position_.clear();
  if (!order_.resize(static_cast<std::size_t>(ranks_), 0) || !position_.resize(static_cast<std::size_t>(ranks_), 0))
    return false;
  // In `groups_` parents come after their children, so this goes backwards: from the top down.
  for (std::size_t g = groups_.size(); g-- > 0;) {
    int at = groups_[g].order_begin;
    for (int i = 0; i < groups_[g].children; ++i) {
      const int child = children_[groups_[g].first_child + i];
      if (groups_[g].level == 0) {
        order_[at] = child;
        position_[child] = at++;
      } else {
        groups_[child].order_begin = at;
        at += groups_[child].ranks;
      }
    }
  }
  keeps_rank_order_ = true;
  for (int r = 0; r < ranks_; ++r) keeps_rank_order_ = keeps_rank_order_ && order_[r] == r;
  return true;
}

// If the groups of a level are alike, their size divides the number of all ranks. If that is a
// power of two, the size is one too.
bool Hierarchy::splits_in_halves() const {
  bool alike = true;
  for (int level = 0; level < levels_; ++level) {
    const int first = group_on(level, 0);
    for (int i = 1; i < groups_on(level); ++i) alike = alike && under(first + i) == under(first);
  }
  return alike && std::has_single_bit(static_cast<unsigned>(ranks_));
}

// The nearest of a group's ranks that have `card` nearest and are no carriers yet, and of several
// the lowest. -1: there is none.
int Hierarchy::nearest(const Group& group, std::uint32_t card, const Array<sys::NicPlace>& nics) const {
  int found = -1;
  for (int i = group.order_begin; i < group.order_begin + group.ranks; ++i) {
    const int rank = order_[i];
    bool able = (nics[rank].nearest & card) != 0;
    for (int c = 0; c < group.carriers && able; ++c) able = carriers_[group.first_carrier + c].rank != rank;
    if (!able) continue;
    const bool nearer = found < 0 || nics[rank].distance < nics[found].distance;
    if (nearer || (nics[rank].distance == nics[found].distance && rank < found)) found = rank;
  }
  return found;
}

bool Hierarchy::make_carriers(const Array<sys::NicPlace>& nics) {
  carriers_.clear();
  nearest_.clear();
  for (const sys::NicPlace& nic : nics) nearest_.push(nic.nearest);
  for (Group& group : groups_) {
    group.first_carrier = static_cast<int>(carriers_.size());
    std::uint32_t cards = 0;
    for (int i = 0; i < group.ranks && !nics.empty(); ++i) cards |= nics[order_[group.order_begin + i]].nearest;
    for (; cards != 0; cards &= cards - 1) {
      const std::uint32_t card = cards & -cards;
      const int rank = nearest(group, card, nics);
      if (rank < 0) continue;
      if (!carriers_.push({rank, card})) return false;
      ++group.carriers;
    }
    if (group.carriers != 0) continue;
    if (!carriers_.push({group.leader, 0})) return false;
    group.carriers = 1;
  }
  return !nearest_.failed();
}

int Hierarchy::place_among_carriers(int group, int rank) const {
  const Carrier* const all = carriers_.data() + groups_[group].first_carrier;
  for (int i = 0; i < groups_[group].carriers; ++i) {
    if (all[i].rank == rank) return i;
  }
  for (int i = 0; i < groups_[group].carriers && !nearest_.empty(); ++i) {
    if ((all[i].card & nearest_[rank]) != 0) return i;
  }
  return 0;
}

bool Hierarchy::build(const Placement& placement, const LevelChoice& choice) {
  ranks_ = placement.ranks;
  Placement chosen;
  Array<int> group_of;
  int groups_on_level[kMostLevels];
  return choose_levels(placement, choice, &chosen) && number_groups(chosen, &group_of, groups_on_level) &&
         make_groups(group_of, chosen, groups_on_level, placement.nics) && make_order() &&
         make_carriers(placement.nics);
}

int Hierarchy::group_over(int rank, int level) const {
  int group = lowest_group_[rank];
  for (int l = 0; l < level; ++l) group = groups_[group].parent;
  return group;
}

bool Hierarchies::build(const Placement& placement, const LevelChoice& choice) {
  LevelChoice of_nodes = choice;
  if (choice.all && choice.count == 0 && choice.at_most == 0) {
    of_nodes.all = false;
    of_nodes.count = 1;
    of_nodes.entries[0].name = {"node"};
  }
  return all.build(placement, choice) && nodes.build(placement, of_nodes);
}

int Hierarchies::node_count() const { return nodes.members(nodes.group_on(nodes.levels() - 1, 0)); }

int Hierarchies::node_leader(int i) const {
  const int top = nodes.group_on(nodes.levels() - 1, 0);
  return nodes.member(top, i, nodes.leader(top));
}

int Hierarchies::nodes_in_each_group(int level) const {
  int each = 0, begin = 0;
  for (int i = 1; i <= node_count(); ++i) {
    if (i < node_count() && all.group_over(node_leader(i), level) == all.group_over(node_leader(begin), level))
      continue;
    if (each != 0 && i - begin != each) return 0;
    each = i - begin;
    begin = i;
  }
  return each;
}

bool Hierarchies::one_switch() const {
  const int below_top = all.levels() - 2;
  return below_top < 0 || all.groups_on(below_top) >= node_count();
}

bool Hierarchies::nodes_split_in_halves() const {
  for (int level = 0; level < all.levels(); ++level) {
    if (nodes_in_each_group(level) == 0) return false;
  }
  for (int i = 1; i < node_count(); ++i) {
    if (all.position(node_leader(i)) < all.position(node_leader(i - 1))) return false;
  }
  return std::has_single_bit(static_cast<unsigned>(node_count()));
}

}  // namespace stretto::topo
