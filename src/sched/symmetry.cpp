// SPDX-License-Identifier: BSD-3-Clause
#include "sched/symmetry.hpp"

#include <algorithm>

namespace stretto::sched {
namespace {

int distance(const Step& step, int rank, int ranks) {
  return step.is_message() ? (step.peer - rank + ranks) % ranks : 0;
}

bool are_alike(const Step& a, int rank_a, const Step& b, int rank_b, int ranks) {
  return a.kind == b.kind && a.length == b.length && a.segment == b.segment && a.priority == b.priority &&
         a.message_index == b.message_index && distance(a, rank_a, ranks) == distance(b, rank_b, ranks);
}

// Steps may name what they depend on in any order.
bool depend_alike(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

}  // namespace

int period_of(const topo::Hierarchy* hierarchy, const Costs& costs, int ranks) {
  const int top = hierarchy ? hierarchy->levels() - 1 : 0;
  const int sharing = hierarchy ? costs.processors.level : -1;
  if (costs.processors.count > 0 && (sharing < 0 || sharing >= top)) return ranks;
  if (top == 0) return 1;
  if (!hierarchy->keeps_rank_order()) return ranks;
  int under = 1;
  for (int level = 0; level < top; ++level) {
    under = hierarchy->under(hierarchy->group_on(level, 0));
    for (int i = 1; i < hierarchy->groups_on(level); ++i) {
      if (hierarchy->under(hierarchy->group_on(level, i)) != under) return ranks;
    }
  }
  return under;
}

bool does_the_same(const Schedule& schedule, int rank, const Schedule& other, int other_rank, int ranks) {
  if (schedule.steps.size() != other.steps.size()) return false;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step &a = schedule.steps[i], &b = other.steps[i];
    if (!are_alike(a, rank, b, other_rank, ranks)) return false;
    if (!depend_alike(schedule.dependencies_of(a), other.dependencies_of(b))) return false;
  }
  return true;
}

}  // namespace stretto::sched
