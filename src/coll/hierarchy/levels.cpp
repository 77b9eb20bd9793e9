// SPDX-License-Identifier: BSD-3-Clause
#include "coll/hierarchy/levels.hpp"

namespace stretto::coll {

const Algorithm* default_algorithm(Collective collective) {
  switch (regular_form(collective)) {
    case Collective::barrier: return find_algorithm(Collective::barrier, "dissemination");
    case Collective::allreduce: return find_algorithm(Collective::allreduce, "recursive_doubling");
    case Collective::allgather: return find_algorithm(Collective::allgather, "bruck");
    case Collective::alltoall: return find_algorithm(Collective::alltoall, "linear");
    case Collective::reduce_scatter: return find_algorithm(Collective::reduce_scatter, "pairwise");
    case Collective::scan: return find_algorithm(Collective::scan, "doubling");
    case Collective::exscan: return find_algorithm(Collective::exscan, "doubling");
    default: return find_algorithm(collective, "binomial");
  }
}

Levels::Levels(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem, int root)
    : builder_(builder), hierarchy_(hierarchy), plan_(plan), rank_(problem.rank), commutative_(problem.commutative) {
  std::size_t begins[topo::kMostLevels + 1];
  for (int level = 0; level < hierarchy.levels() && hierarchy.is_member(rank_, level, root); ++level) {
    const int group = hierarchy.group_over(rank_, level);
    const int leader = hierarchy.leader(group, root);
    begins[level] = ranks_.size();
    groups_[level].size = hierarchy.members(group);
    for (int i = 0; i < groups_[level].size; ++i) {
      const int member = hierarchy.member(group, i, root);
      ranks_.push(member);
      if (member == rank_) groups_[level].me = i;
      if (member == leader) leaders_[level] = i;
    }
    reach_ = level + 1;
  }
  if (ranks_.failed()) reach_ = 0;
  for (int level = 0; level < reach_; ++level) groups_[level].ranks = ranks_.data() + begins[level];
}

Call Levels::call(int level) const {
  Call call;
  call.group = groups_[level];
  call.root = leaders_[level];
  call.commutative = commutative_;
  return call;
}

HierarchyPlan::Choice Levels::choice(int level, Collective collective) const {
  HierarchyPlan::Choice choice = plan_.choices[static_cast<int>(collective)][level];
  if (!choice.algorithm) choice.algorithm = default_algorithm(collective);
  if (choice.k == 0) choice.k = choice.algorithm->k;
  return choice;
}

void Levels::emit(int level, Collective collective, const Call& call) {
  const HierarchyPlan::Choice chosen = choice(level, collective);
  Call with_parameters = call;
  with_parameters.parameters.k = chosen.k;
  chosen.algorithm->emit(builder_, with_parameters);
}

}  // namespace stretto::coll
