// SPDX-License-Identifier: BSD-3-Clause
// Collectives over a hierarchy: one schedule made of flat algorithms, one for each level, on groups of ranks (topo/hierarchy.hpp)
// instead of sub-communicators. A long vector is emitted segment by segment, through all levels each, so that all levels work at
// once: what overlaps follows from the slices, as always.
//
//   bcast           down the levels
//   reduce          up the levels; a leader combines in memory of its own, the root in its buffer
//   allreduce       three forms, see AllreduceForm
//   barrier         signals up, a barrier on top, signals down
//   gather          up the levels, a leader's parts packed in the order of the tree of groups
//   scatter         down the levels, likewise
//   allgather       gather up, allgather on top, bcast down
//   reduce_scatter  reduce, then scatter
//   scan, exscan    in each group, and over the groups' sums on each level; what is before a group goes down to its members
//   alltoall        between nodes by carriers, which every rank is for some nodes; of parts of different lengths: flat
//
// Every part's length must be known to every rank. Scans, and operations that do not commute, need groups of neighbouring ranks;
// where groups are of others, they go flat.
//
// After Kurnosov 2023, which has the levels, bcast, reduce and the first two forms of allreduce, without segments.
#pragma once
#include "coll/algorithm.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::coll {

enum class AllreduceForm : std::uint8_t {
  allreduce_on_top,  // reduce up to the top, allreduce there, bcast down
  reduce_bcast,      // reduce to one rank, bcast from it
  rails,             // the ranks of a node share the vector: each has a part of it reduced, and reduces it across the nodes
};
inline constexpr int kAllreduceForms = 3;
// What people call a composition over the levels, by the form that an allreduce takes there.
inline constexpr const char* kCompositionNames[kAllreduceForms] = {"hierarchy", "hierarchy:reduce_bcast", "hierarchy:rails"};

struct HierarchyPlan {
  struct Choice {
    const Algorithm* algorithm = nullptr;  // null: a default. Must serve the group's parts and operation.
    int k = 0;
  };
  Choice choices[kCollectives][topo::kMostLevels + 1];  // by collective (regular form) and level
  int segments = 1;
  bool in_line = false;  // bcast, and sums that commute: one algorithm, that of the top, along a line of all ranks
  AllreduceForm form = AllreduceForm::allreduce_on_top;
  int node_level = 0;  // the level whose groups share the network: rails, carriers
};

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem);

}  // namespace stretto::coll
