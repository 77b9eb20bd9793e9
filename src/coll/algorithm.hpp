// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm is: a function that emits the steps of one member of a group. It knows neither
// MPI nor memory. What it emits depends on its arguments alone.
//
//   void emit(Builder&, const Call&)
//
// Collectives of one vector (bcast, reduce, allreduce, scan, exscan) have it in `in` and `out`.
// Collectives with one part for each member have the parts in `ins` or `outs`, and this member's
// own part in `in` or `out`. Operands (below) lists them. An input and an output may be the same
// slice (in place). Only alltoall never sees that: build() has copied its input.
#pragma once
#include <cstdint>
#include <span>

#include "base/collective.hpp"
#include "base/neighborhood.hpp"
#include "coll/shape/group.hpp"
#include "coll/shape/parts.hpp"
#include "sched/builder.hpp"

namespace stretto::coll {

using sched::Builder;
using sched::Schedule;

// What a caller may choose. 0: the algorithm's own choice.
struct Parameters {
  int segments = 1;
  int k = 0;       // arity of a tree, number of chains, radix
  int window = 0;  // messages in flight; 0: any number
};

// Limited by the 16 bits that a step has for its segment.
inline int segment_count(int wanted) { return wanted < 1 ? 1 : wanted > 0xffff ? 0xffff : wanted; }

// Operands, by collective. A member does not use a slice that is not listed for it.
//   bcast           in: the root's vector, at the root; out: every member's; at the root often `in`
//   reduce          in: own contribution; out: the result, at the root
//   allreduce       in, out
//   scan, exscan    in, out
//   gather          in: own part; outs: the root's, elsewhere lengths only
//   scatter         ins: the root's, elsewhere lengths only; out: own part
//   allgather       in: own part; outs
//   alltoall        ins, outs
//   reduce_scatter  ins: own contribution in parts; out: own part of the result
struct Call {
  Group group;
  int root = 0;
  bool commutative = false;
  Parameters parameters;
  Slice in, out;
  Parts ins, outs;
};

using Emit = void (*)(Builder&, const Call&);

// One line of the manifest (manifest.cpp).
struct Algorithm {
  enum Needs : std::uint8_t {
    nothing = 0,
    commutative = 1,  // serves operations that commute only
    whole_parts = 2,  // moves several parts in one message: must not be segmented
    equal_parts = 4,  // does not serve the v-forms
    // Every member must know the lengths of all parts, even if MPI gives them to the root alone.
    every_length = 8,
    in_pieces = 16,  // its messages are cut (Builder::cut_messages): must not be segmented
  };
  Collective collective;  // the regular form, which stands for the v-form as well
  const char* name;
  Emit emit;
  std::uint8_t needs;
  int k;                     // the parameter's default; 0: it has none; -1: it has a rule of its own
  bool window;               // heeds Parameters::window
  const char* is = nullptr;  // what runs, where the name is another one of that

  [[nodiscard]] bool serves(bool is_commutative, bool has_equal_parts) const {
    return (is_commutative || !(needs & commutative)) && (has_equal_parts || !(needs & equal_parts));
  }
  void emit_to(Builder& builder, const Call& call) const {
    builder.cut_messages((needs & in_pieces) != 0);
    emit(builder, call);
    builder.cut_messages(false);
  }
  [[nodiscard]] bool segmentable() const {
    return !(needs & (whole_parts | in_pieces)) && collective != Collective::barrier;
  }
};
std::span<const Algorithm> manifest();
// Null if there is none. The v-form of a collective finds its regular form's algorithms.
const Algorithm* find_algorithm(Collective collective, const char* name);

// One collective call as one rank sees it. Lengths are units. `count` is the length of a vector,
// and of each part in the regular forms.
struct Problem {
  Collective collective = Collective::barrier;
  int size = 1;
  int rank = 0;
  int root = 0;
  bool in_place = false;
  bool commutative = false;
  bool in_order = false;  // must be combined from left to right in rank order
  std::uint64_t count = 0;
  // V-forms and reduce_scatter: size + 1 offsets of the parts. Allreduce by a pipeline: the parts
  // that its members own. What lies before them and behind them is not combined.
  const std::uint64_t* begins = nullptr;
  // Alltoallv: `begins` has the parts received, this has the parts sent.
  const std::uint64_t* sent_begins = nullptr;
  // Alltoallv by carriers: what the ranks of this rank's node have told it (hierarchy/nodes.hpp).
  const std::uint64_t* told = nullptr;
  std::size_t told_words = 0;
  // Neighbourhood collectives: `begins` has a part for each source, `sent_begins` one for each
  // destination. In an allgather all destinations get the one part sent.
  const Neighborhood* neighborhood = nullptr;

  [[nodiscard]] int parts() const { return neighborhood == nullptr ? size : neighborhood->sources(); }
  [[nodiscard]] int sent_parts() const {
    if (neighborhood == nullptr) return size;
    return sends_alike() ? 1 : neighborhood->destinations();
  }
  // Whether all neighbours get the same data.
  [[nodiscard]] bool sends_alike() const {
    return collective == Collective::neighbor_allgather || collective == Collective::neighbor_allgatherv;
  }
};

// How long this rank's buffers are, in units: what a binding must have behind them.
struct Extent {
  std::uint64_t send, receive;
};
Extent extent(const Problem& problem);

// The schedule of problem.rank. The time it takes grows with its own steps only. It needs no table
// of ranks but what the problem brings.
Schedule build(Builder& builder, const Algorithm& algorithm, const Problem& problem, const Parameters& parameters);
// The same for a neighbourhood collective (neighbors.cpp).
Schedule build_neighbors(Builder& builder, const Problem& problem);
// The problem as a call on a group of all ranks, and that call in segments; for compositions.
Call whole_call(Builder& builder, const Problem& problem, const Parameters& parameters);
void emit_segments(Builder& builder, const Algorithm& algorithm, const Call& call);
// Copies to its place what could not go there before everything was read.
void finish_in_place(Builder& builder, const Problem& problem, const Call& call);

// The collective whose algorithms serve this one: gather for gatherv, reduce_scatter for
// reduce_scatter_block.
Collective regular_form(Collective collective);
bool has_root(Collective collective);

}  // namespace stretto::coll
