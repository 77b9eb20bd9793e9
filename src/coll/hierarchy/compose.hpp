// SPDX-License-Identifier: BSD-3-Clause
// Collectives over a hierarchy: one schedule made of flat algorithms, one for each level, on groups of ranks
// (topo/hierarchy.hpp) instead of sub-communicators. A long vector is emitted segment by segment, through all levels
// each, so that all levels work at once: what overlaps follows from the slices, as always.
//
//   bcast           down the levels
//   reduce          up the levels; a leader combines in memory of its own, the root in its buffer
//   allreduce       up the levels, allreduce on top, down the levels; or otherwise, see Form
//   barrier         signals up, a barrier on top, signals down
//   gather          up the levels, a leader's parts packed in the order of the tree of groups
//   scatter         down the levels, likewise
//   allgather       gather up, allgather on top, bcast down
//   reduce_scatter  reduce, then scatter
//   scan, exscan    in each group, and over the groups' sums on each level; what is before a group goes down to its
//   members alltoall        between nodes by carriers, which every rank is for some nodes; of parts of different
//   lengths: flat
//
// Every part's length must be known to every rank. Scans, and operations that do not commute, need groups of
// neighbouring ranks; where groups are of others, they go flat.
//
// After Kurnosov 2023, which has the levels, bcast, reduce and the first two forms of allreduce, without segments.
#pragma once
#include "coll/algorithm.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::coll {

// Of bcast, reduce and allreduce. By rails and by stripes the vector is cut into as many stripes as the node with
// fewest carriers has, and each carrier of a node takes one across the network: every stripe is a composition in which
// its carriers lead (levels.hpp). By rails, where everybody is a carrier, a node's ranks reduce and gather all stripes
// together, by its reduce_scatter and its allgather.
enum class Form : std::uint8_t {
  allreduce_on_top,  // allreduce: reduce up to the top, allreduce there, bcast down. Others have no choice there
  reduce_bcast,      // allreduce: reduce to one rank, bcast from it
  rails,    // carriers are all ranks; without levels in nodes and between nodes and the top, which would gather what is
            // to be shared
  stripes,  // carriers are the ranks nearest to network cards, one for each (topo/hierarchy.hpp)
};
inline constexpr int kForms = 4;
// Whether a form is offered for a collective.
bool has_form(Collective collective, Form form);
// Whether a collective's vector may go along a chain of all ranks: bcast, reduce, allreduce.
bool has_chain(Collective collective);

struct HierarchyPlan {
  struct Choice {
    const Algorithm* algorithm =
        nullptr;  // null, or for operations that do not commute where it needs those that do: a default
    int k = 0;
  };
  Choice choices[kCollectives][topo::kMostLevels + 1];  // by collective (regular form) and level
  int segments = 1;
  bool as_chain =
      false;  // of what has a chain, sums that commute: one algorithm, that of the top, along a chain of all ranks
  Form form = Form::allreduce_on_top;
  int node_level = 0;  // the level whose groups share the network: rails, stripes, carriers

  // One algorithm for a collective on every level, by its name, if there is one by that name.
  void choose(Collective collective, const char* name);
};

// Into how many stripes a plan cuts vectors; 0: it does not.
int stripe_count(const topo::Hierarchy& hierarchy, const HierarchyPlan& plan);

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan,
                            const Problem& problem);

}  // namespace stretto::coll
