// SPDX-License-Identifier: BSD-3-Clause
// One composition under way: the whole call, this rank's groups, and the movements up and down the
// levels. Collectives are made of these movements (compose.hpp lists them).
#pragma once
#include "coll/hierarchy/levels.hpp"
#include "coll/hierarchy/packed.hpp"

namespace stretto::coll {

class Composition {
 public:
  Composition(Builder& builder, const topo::Hierarchy& of, const HierarchyPlan& with, const Problem& call_of);

  Builder& b;
  const topo::Hierarchy& hierarchy;
  const HierarchyPlan& plan;
  const Problem& problem;
  Call whole;  // on all ranks
  int root;    // the call's root, or else the rank that leads everything
  Levels levels;

  // Calls `emit` for one segment of the vectors after the other.
  template <class Emit>
  void each_segment(Emit emit) {
    const auto segments = static_cast<std::uint64_t>(segment_count(plan.segments));
    for (std::uint64_t s = 0; s < segments; ++s) {
      Call part = whole;
      part.in = piece(whole.in, segments, s);
      part.out = piece(whole.out, segments, s);
      b.set_segment(static_cast<int>(s), static_cast<int>(segments));
      b.set_priority(static_cast<int>(s));
      emit(part);
    }
  }

  // Calls `emit` for one stripe of the vectors after the other, with this rank's groups for it.
  // Without stripes, calls it once.
  template <class Emit>
  void each_stripe(const Call& vector, Emit emit) {
    const int stripes = stripe_count(hierarchy, plan);
    if (stripes == 0) return emit(levels, vector);
    for (int s = 0; s < stripes; ++s) {
      Levels own(b, hierarchy, plan, problem, Lead(hierarchy, plan, root, s, stripes));
      if (own.failed()) return b.fail();
      Call part = vector;
      part.in = piece(vector.in, static_cast<std::uint64_t>(stripes), static_cast<std::uint64_t>(s));
      part.out = piece(vector.out, static_cast<std::uint64_t>(stripes), static_cast<std::uint64_t>(s));
      emit(own, part);
    }
  }

  // Brings a vector from the leaders of level `from` (at `in`) to all ranks below, down to level
  // `to` (at `out`).
  void down(Levels& by, int from, int to, Slice in, Slice out);
  // Sums the vectors at `in`, up to the leaders of the levels below `to`. Returns where this rank
  // has its part of the sum. Sums go to `out` where this rank may write there, or else to the
  // schedule's own memory.
  Slice up(Levels& by, int to, Slice in, Slice out, bool may_write);
  // Sums the vectors up to the root, into its `out`.
  void up_to_root(Levels& by, Slice in, Slice out);
  // The highest group that this rank leads. -1: none.
  [[nodiscard]] int top_led() const;
  [[nodiscard]] bool is_root() const { return problem.rank == root; }
};

// The steps of one collective. `call` is one segment of the vectors.
void compose_bcast(Composition&, const Call& call);
void compose_reduce(Composition&, const Call& call);
void compose_allreduce(Composition&, const Call& call);
void compose_scan(Composition&, const Call& call);
void compose_barrier(Composition&);
void compose_gather(Composition&);
void compose_scatter(Composition&);
void compose_allgather(Composition&);
void compose_reduce_scatter(Composition&);
void compose_alltoall(Composition&);
// Along a chain of all ranks.
void compose_as_chain(Composition&);
// As if there were no levels.
void compose_flat(Composition&);

}  // namespace stretto::coll
