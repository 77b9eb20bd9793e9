// SPDX-License-Identifier: BSD-3-Clause
#include "coll/hierarchy/levels.hpp"

#include <bit>

namespace stretto::coll {

const Algorithm* default_algorithm(Collective collective, int members, bool commutative) {
  const bool halves = std::has_single_bit(static_cast<unsigned>(members));
  switch (regular_form(collective)) {
    case Collective::barrier: return find_algorithm(Collective::barrier, "dissemination");
    case Collective::allreduce: return find_algorithm(Collective::allreduce, "recursive_doubling");
    case Collective::allgather: return find_algorithm(Collective::allgather, halves ? "recursive_doubling" : "bruck");
    case Collective::alltoall: return find_algorithm(Collective::alltoall, "linear");
    case Collective::reduce_scatter:
      return find_algorithm(Collective::reduce_scatter, halves && commutative ? "recursive_halving" : "pairwise");
    case Collective::scan: return find_algorithm(Collective::scan, "doubling");
    case Collective::exscan: return find_algorithm(Collective::exscan, "doubling");
    default: return find_algorithm(collective, "binomial");
  }
}

void HierarchyPlan::choose(Collective collective, const char* name, int k) {
  const Algorithm* const algorithm = find_algorithm(collective, name);
  if (!algorithm) return;
  for (Choice& choice : choices[static_cast<int>(regular_form(collective))]) choice = {algorithm, k};
}

Lead::Lead(const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, int root, int stripe, int stripes)
    : hierarchy_(hierarchy),
      root_(root),
      head_(root),
      stripe_(stripe),
      stripes_(stripes),
      node_level_(plan.node_level),
      rails_(plan.form == Form::rails) {
  head_ = carrier(hierarchy.group_over(root, node_level_));
}

Lead Lead::by_root() const {
  Lead lead = *this;
  lead.head_ = root_;
  return lead;
}

int Lead::carrier(int node) const {
  if (rails_) return hierarchy_.order()[hierarchy_.order_begin(node) + stripe_];
  const bool roots = hierarchy_.has(node, root_) && hierarchy_.place_among_carriers(node, root_) % stripes_ == stripe_;
  return roots ? root_ : hierarchy_.carrier(node, stripe_);
}

int Lead::leader(int group) const {
  const int usual = hierarchy_.leader(group, head_);
  if (stripes_ == 0 || usual == head_) return usual;
  const int here = carrier(hierarchy_.group_over(usual, node_level_));
  return hierarchy_.has(group, here) ? here : usual;
}

template <class Visit>
void Lead::each_member(int group, int level, Visit visit) const {
  if (!rails_) {
    for (int i = 0; i < hierarchy_.members(group); ++i)
      visit(level == 0 ? hierarchy_.child(group, i) : leader(hierarchy_.child(group, i)));
  } else if (level == node_level_) {
    for (int i = 0; i < hierarchy_.under(group); ++i) visit(hierarchy_.order()[hierarchy_.order_begin(group) + i]);
  } else if (level + 1 == hierarchy_.levels()) {
    for (int i = 0; i < hierarchy_.groups_on(node_level_); ++i) visit(carrier(hierarchy_.group_on(node_level_, i)));
  }
}

Levels::Levels(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem,
               const Lead& lead)
    : builder_(builder),
      hierarchy_(hierarchy),
      plan_(plan),
      lead_(lead),
      rank_(problem.rank),
      commutative_(problem.commutative) {
  std::size_t begins[topo::kMostLevels + 1];
  bool leads_all = true;
  for (int level = 0; level < hierarchy.levels() && leads_all; ++level) {
    const int leader = lead.leader(group(level));
    Group& members = groups_[level];
    members.size = 0;
    begins[level] = ranks_.size();
    lead.each_member(group(level), level, [&](int member) {
      if (member == rank_) members.me = members.size;
      if (member == leader) leaders_[level] = members.size;
      ranks_.push(member);
      ++members.size;
    });
    leads_all = members.size == 0 || leader == rank_;
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
  if (!choice.algorithm || !choice.algorithm->serves(commutative_, true))
    choice = {default_algorithm(collective, groups_[level].size, commutative_), 0};
  if (choice.k == 0) choice.k = choice.algorithm->k;
  return choice;
}

void Levels::emit(int level, Collective collective, const Call& call) {
  const HierarchyPlan::Choice chosen = choice(level, collective);
  Call with_parameters = call;
  with_parameters.parameters.k = chosen.k;
  chosen.algorithm->emit_to(builder_, with_parameters);
}

}  // namespace stretto::coll
