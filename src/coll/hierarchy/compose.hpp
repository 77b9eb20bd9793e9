// SPDX-License-Identifier: BSD-3-Clause
// Collectives over a hierarchy: one schedule made of flat algorithms, one for each level. They run
// on groups of ranks (topo/hierarchy.hpp), so there are no sub-communicators. A long vector is
// emitted segment by segment, each segment through all levels. All levels work at once: the slices
// say what may overlap.
//
//   bcast           down the levels
//   reduce          up the levels; a leader combines in memory of its own, the root in its buffer
//   allreduce       up the levels, allreduce on top, down the levels; or another Form
//   barrier         signals up, a barrier on top, signals down
//   gather          up the levels; a leader packs its parts in the order of the tree of groups
//   scatter         down the levels, likewise
//   allgather       gather up, allgather on top, bcast down
//   reduce_scatter  reduce, then scatter
//   scan, exscan    in each group, and over the groups' sums on each level; the sum of what is
//                   before a group goes down to its members
//   alltoall        between nodes by carriers, which every rank is for some nodes; straight, one
//                   node after the other, if the parts differ in length or the plan says pairwise;
//                   parts that differ in length go by carriers in Form::carriers
//
// Every rank must know every part's length. Scans, and operations that do not commute, need groups
// of neighbouring ranks. For other groups they go flat.
//
// After Kurnosov 2023. That paper has the levels, bcast, reduce and the first two forms of
// allreduce, without segments.
#pragma once
#include "base/tuning.hpp"
#include "coll/algorithm.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::coll {

// The forms of bcast, reduce, allreduce and alltoallv.
//
// Rails and stripes cut the vector into as many stripes as the node with the fewest carriers has.
// Each carrier of a node takes one stripe across the network. Every stripe is a composition that
// its carriers lead (levels.hpp).
//
// With rails, every rank is a carrier. A node's ranks reduce and gather all stripes together, by a
// reduce_scatter and an allgather of the node.
enum class Form : std::uint8_t {
  // Allreduce: reduce up to the top, allreduce there, bcast down. For the others the only choice.
  allreduce_on_top,
  // Allreduce: reduce to one rank, bcast from it.
  reduce_bcast,
  // Carriers are all ranks. Levels within nodes, and between nodes and the top, are left out: they
  // would gather what is to be shared.
  rails,
  // Carriers are the ranks nearest to network cards, one for each card (topo/hierarchy.hpp).
  stripes,
  // Alltoallv: short parts by carriers, if Problem::told says how long those of others are.
  carriers,
};
inline constexpr int kForms = 5;
// Whether a collective has a form.
bool has_form(Collective collective, Form form);
// Whether a collective's vector may go along a chain of all ranks: bcast, reduce, allreduce.
bool has_chain(Collective collective);

struct HierarchyPlan {
  struct Choice {
    // A default, where this is null or does not serve an operation that does not commute.
    const Algorithm* algorithm = nullptr;
    int k = 0;
  };
  Choice choices[kCollectives][topo::kMostLevels + 1];  // by collective (regular form) and level
  int segments = 1;
  // Vectors of collectives that have a chain, if sums commute, go along a chain of all ranks. One
  // algorithm serves them, that of the top.
  bool as_chain = false;
  Form form = Form::allreduce_on_top;
  int node_level = 0;  // the level whose groups share the network: rails, stripes, carriers
  // Bcast, reduce, allreduce and barrier: something else serves the levels below this one. What a
  // rank that leads there has is what its ranks have together.
  int lowest = 0;
  std::uint64_t most_carried = kTuning.carried_bytes;  // of a part, in units: Form::carriers

  // Chooses one algorithm for a collective on every level, if there is one by that name. k = 0: its
  // default.
  void choose(Collective collective, const char* name, int k = 0);
};

// Into how many stripes a plan cuts vectors. 0: it cuts none.
int stripe_count(const topo::Hierarchy& hierarchy, const HierarchyPlan& plan);

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan,
                            const Problem& problem);

}  // namespace stretto::coll
