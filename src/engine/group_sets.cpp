// SPDX-License-Identifier: BSD-3-Clause
#include "engine/group_sets.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <new>

namespace stretto::engine {
namespace {

bool is_same(const topo::Binding& a, const topo::Binding& b) {
  return std::equal(std::begin(a.domains), std::end(a.domains), std::begin(b.domains));
}

bool fits(const GroupSets& sets, int rank, int most_members, const Array<topo::Binding>& bindings) {
  return sets.rank == rank && sets.most_members == most_members && sets.bindings.size() == bindings.size() &&
         std::equal(bindings.begin(), bindings.end(), sets.bindings.begin(), is_same);
}

void find_groups(GroupSets& sets) {
  const auto size = static_cast<int>(sets.bindings.size());
  const auto fill = [&](topo::Groups& groups, const topo::Plan& plan, const topo::Binding* by) {
    const topo::Plan fitting = plan.at_most(sets.most_members);
    if (!groups.find(sets.rank, size, by, fitting) && !groups.find(sets.rank, size, nullptr, fitting)) std::abort();
  };
  fill(sets.placed, topo::kShortPlan, sets.bindings.data());
  fill(sets.deep, topo::kLongPlan, sets.bindings.data());
  fill(sets.rails, topo::kRailsPlan, sets.bindings.data());
  if (!sets.placed.keep_rank_order()) fill(sets.ranked, topo::kShortPlan, nullptr);
}

}  // namespace

GroupSets& group_sets_take(GroupSets*& list, int rank, int most_members, Array<topo::Binding>& bindings) {
  GroupSets* sets = list;
  while (sets != nullptr && !fits(*sets, rank, most_members, bindings)) sets = sets->next;
  if (sets == nullptr) {
    void* const memory = std::malloc(sizeof(GroupSets));
    if (memory == nullptr) std::abort();
    sets = new (memory) GroupSets;
    sets->rank = rank;
    sets->most_members = most_members;
    sets->bindings.swap(bindings);
    sets->next = list;
    list = sets;
    find_groups(*sets);
  }
  ++sets->users;
  return *sets;
}

void group_sets_give_back(GroupSets*& list, GroupSets* sets) {
  if (--sets->users != 0) return;
  GroupSets** link = &list;
  while (*link != sets) link = &(*link)->next;
  *link = sets->next;
  sets->~GroupSets();
  std::free(sets);
}

}  // namespace stretto::engine
