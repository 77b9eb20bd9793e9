// SPDX-License-Identifier: BSD-3-Clause
#include "topo/groups.hpp"

#include <algorithm>
#include <cstddef>

namespace stretto::topo {
namespace {

constexpr int kNode = Binding::kLevels;  // the level above those of a binding: all are in one domain

// A group of the level below. They are numbered in the order of their lowest ranks.
struct Unit {
  int lowest = 0;
  Binding binding;  // of that rank
  std::uint16_t number = 0;
};

bool same_domain(const Unit& a, const Unit& b, int level) {
  return level == kNode || a.binding.domains[level] == b.binding.domains[level];
}

// By their domains of the level, or, if that is the node, by where they are on it.
void sort_by_place(Array<Unit>& units, int level) {
  std::sort(units.begin(), units.end(), [&](const Unit& a, const Unit& b) {
    for (int l = level == kNode ? Binding::kSocket : level; l >= (level == kNode ? 0 : level); --l) {
      if (a.binding.domains[l] != b.binding.domains[l]) return a.binding.domains[l] < b.binding.domains[l];
    }
    return a.lowest < b.lowest;
  });
}

// How the units of a level are put into groups.
struct Division {
  Array<std::uint16_t> group_of;  // by number of a unit
  int groups = 0, fewest = 0, most = 0;
  bool splits = false;  // a domain

  // Neighbours of one domain, and at most so many. False: no memory.
  bool make(const Array<Unit>& units, int level, int most_members) {
    group_of.clear();
    groups = most = 0;
    fewest = static_cast<int>(units.size());
    if (!group_of.resize(units.size(), 0)) return false;
    for (std::size_t first = 0, last = 0; first < units.size(); first = last) {
      while (last < units.size() && same_domain(units[last], units[first], level)) ++last;
      const std::size_t size = last - first, each = static_cast<std::size_t>(most_members);
      const std::size_t parts = (size + each - 1) / each;
      splits = splits || parts > 1;
      for (std::size_t part = 0; part < parts; ++part, ++groups) {
        const std::size_t from = first + part * size / parts, to = first + (part + 1) * size / parts;
        for (std::size_t i = from; i < to; ++i) group_of[units[i].number] = static_cast<std::uint16_t>(groups);
        fewest = std::min(fewest, static_cast<int>(to - from));
        most = std::max(most, static_cast<int>(to - from));
      }
    }
    return true;
  }
  // Whether each group has two members, and half as many as any other.
  [[nodiscard]] bool is_even() const { return fewest >= 2 && 2 * fewest >= most; }
};

}  // namespace

struct Groups::Finding {
  const Binding* bindings;
  const Plan& plan;
  Array<Unit> units;
  Array<std::uint16_t> unit_of;  // by rank
  Array<int> column;             // by rank: its number in its unit among those that go on; -1: it does not
};

Binding binding_of(const sys::CpuPlace& place) {
  Binding binding;
  int level = 0;
  for (const sys::CpuDomain domain : {sys::CpuDomain::l3, sys::CpuDomain::numa, sys::CpuDomain::package})
    binding.domains[level++] = place.domains[static_cast<int>(domain)];
  return binding;
}

// Domains of different sockets may have the same number, so a domain is named by its path.
Binding binding_of(const Locality& locality) {
  static_assert(kNodeLevel >= Binding::kLevels, "the levels below the node");
  Binding binding;
  std::uint64_t path = 0;
  for (int level = Binding::kLevels - 1; level >= 0; --level) {
    const std::uint64_t domain = locality.domains[kNodeLevel - Binding::kLevels + level];
    path = (path + domain) * 0x9e3779b97f4a7c15u;
    if (domain != 0) binding.domains[level] = static_cast<std::int32_t>(path >> 33);
  }
  return binding;
}

// Rails whose lowest groups would differ in size get neighbours by place instead, and as many each.
// A higher level that would do so is left out.
bool Groups::add_level(Finding& finding, int domains) {
  const Plan& plan = finding.plan;
  const auto units = static_cast<int>(finding.units.size());
  const bool lowest = height_ == 0;
  const int most = lowest ? plan.most_ranks : plan.rails ? units : 2 * plan.most_ranks;
  if (plan.few && !lowest && domains != kNode && units <= most) return true;
  Division division;
  sort_by_place(finding.units, domains);
  if (!division.make(finding.units, domains, most)) return false;
  split_caches_ = split_caches_ || (domains == Binding::kL3 && division.splits);
  if (plan.rails && !division.is_even()) {
    if (!lowest) return true;
    sort_by_place(finding.units, kNode);
    if (!division.make(finding.units, kNode, most)) return false;
  }
  if (division.groups == units) return true;
  return height_ < kMostLevels && join(finding, division.group_of, division.groups, plan.rails ? division.fewest : 1);
}

bool Groups::join(Finding& finding, const Array<std::uint16_t>& group_of, int groups, int slices) {
  Array<int> numbers;             // by group: its new number, in the order of lowest ranks
  Array<std::uint16_t> index_of;  // by unit
  Array<Unit> joined;
  if (!numbers.resize(at(groups), -1) || !index_of.resize(group_of.size(), 0)) return false;
  Array<std::uint16_t> sizes;
  std::sort(finding.units.begin(), finding.units.end(),
            [](const Unit& a, const Unit& b) { return a.lowest < b.lowest; });
  for (const Unit& unit : finding.units) {
    int& number = numbers[group_of[unit.number]];
    if (number < 0) {
      number = static_cast<int>(joined.size());
      joined.push({unit.lowest, unit.binding, static_cast<std::uint16_t>(number)});
      sizes.push(0);
    }
    if (joined.failed() || sizes.failed()) return false;
    index_of[unit.number] = sizes[at(number)]++;
  }
  Level& level = levels_[height_];
  level.slices = slices;
  level.group.clear();
  level.index.clear();
  for (const std::uint16_t unit : finding.unit_of) {
    level.group.push(static_cast<std::uint16_t>(numbers[group_of[unit]]));
    level.index.push(index_of[unit]);
  }
  if (level.group.failed() || level.index.failed()) return false;
  keep_rank_order_ = keep_rank_order_ && std::is_sorted(level.group.begin(), level.group.end());

  const int mine = level.group[at(rank_)], column = finding.column[at(rank_)];
  const int size = sizes[at(mine)];
  if (column >= 0 && size > 1) {
    Group& group = groups_[count_++];
    group.level = height_;
    group.index = level.index[at(rank_)];
    group.members.clear();
    if (!group.members.resize(at(size), 0)) return false;
    for (std::size_t r = 0; r < level.group.size(); ++r) {
      if (level.group[r] == mine && finding.column[r] == column) group.members[level.index[r]] = static_cast<int>(r);
    }
  }
  for (std::size_t r = 0; r < level.group.size(); ++r) {
    int& its = finding.column[r];
    its = its >= 0 && level.index[r] < slices ? its * slices + level.index[r] : -1;
    finding.unit_of[r] = level.group[r];
  }
  finding.units.swap(joined);
  ++height_;
  return true;
}

bool Groups::find_order(int ranks) {
  order_.clear();
  for (int r = 0; r < ranks; ++r) order_.push(r);
  if (order_.failed()) return false;
  std::sort(order_.begin(), order_.end(), [&](int a, int b) {
    for (int l = 0; l < height_; ++l) {
      if (slice_of(l, a) != slice_of(l, b)) return slice_of(l, a) < slice_of(l, b);
    }
    return a < b;
  });
  int from = 0, to = ranks;
  for (int i = 0; i < count_; ++i) {
    Group& group = groups_[i];
    const int slices = has_all(group) ? group.size() : levels_[group.level].slices;
    group.cuts.clear();
    for (int slice = 0, next = from; slice <= slices; ++slice) {
      while (next < to && slice_of(group.level, order_[at(next)]) < slice) ++next;
      group.cuts.push(next);
    }
    if (group.cuts.failed()) return false;
    from = group.index < slices ? group.cuts[at(group.index)] : to;
    if (group.index < slices) to = group.cuts[at(group.index) + 1];
  }
  served_from_ = count_ == height_ ? from : 0;
  served_to_ = count_ == height_ ? to : 0;
  all_on_rails_ = true;
  for (int r = 0; r < ranks; ++r) {
    bool serves = true;
    for (int l = 0; l < height_; ++l)
      serves = serves && slice_of(l, r) == slice_of(l, rank_) && levels_[l].index[at(r)] == slice_of(l, r);
    if (serves) server_ = r;
    for (int l = 0; l < height_; ++l) all_on_rails_ = all_on_rails_ && levels_[l].index[at(r)] == slice_of(l, r);
  }
  return true;
}

// What a member stands for are the ranks below the group of the level below that it is of.
bool Groups::find_places(int ranks) {
  places_.clear();
  for (int r = 0; r < ranks; ++r) places_.push(r);
  if (places_.failed()) return false;
  std::sort(places_.begin(), places_.end(), [&](int a, int b) {
    for (int l = height_ - 1; l >= 0; --l) {
      const auto& index = levels_[l].index;
      if (index[at(a)] != index[at(b)]) return index[at(a)] < index[at(b)];
    }
    return a < b;
  });
  for (int i = 0; i < count_; ++i) {
    Group& group = groups_[i];
    group.origins.clear();
    for (int before = 0, m = 0; m <= group.size(); ++m) {
      group.origins.push(before);
      if (m == group.size()) break;
      const auto& below = levels_[std::max(group.level - 1, 0)].group;
      const int member = group.members[at(m)];
      before += group.level == 0 ? 1 : static_cast<int>(std::count(below.begin(), below.end(), below[at(member)]));
    }
    if (group.origins.failed()) return false;
  }
  return true;
}

bool Groups::find(int rank, int ranks, const Binding* bindings, const Plan& plan) {
  rank_ = rank;
  count_ = height_ = 0;
  keep_rank_order_ = true;
  split_caches_ = false;
  span_sockets_ = bindings != nullptr && std::any_of(bindings, bindings + ranks, [&](const Binding& other) {
                    return other.domains[Binding::kSocket] != bindings->domains[Binding::kSocket];
                  });
  Finding finding{bindings, plan, {}, {}, {}};
  for (int r = 0; r < ranks; ++r) {
    const auto number = static_cast<std::uint16_t>(r);
    finding.units.push({r, bindings == nullptr ? Binding{} : bindings[r], number});
    finding.unit_of.push(number);
  }
  if (finding.units.failed() || finding.unit_of.failed() || !finding.column.resize(at(ranks), 0)) return false;
  for (int level = 0; bindings != nullptr && level < kNode; ++level) {
    if ((plan.levels >> level & 1) != 0 && !add_level(finding, level)) return false;
  }
  while (finding.units.size() > 1) {
    if (!add_level(finding, kNode)) return false;
  }
  return !plan.rails || (find_order(ranks) && find_places(ranks));
}

}  // namespace stretto::topo
