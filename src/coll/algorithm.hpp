// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm is: a function that emits the steps of one member of a group. It knows neither MPI nor memory, and
// what it emits depends on its arguments alone.
//
//   void emit(Builder&, const Call&)
//
// Collectives of one vector (bcast, reduce, allreduce, scan, exscan) find it in `in` and `out`; those of one part for
// each member in `ins` or `outs`, with this member's own part in `in` or `out` (collective by collective: Operands
// below). An input and an output may be the same slice (in place); only alltoall never sees that, build() having copied
// its input.
#pragma once
#include <cstdint>
#include <span>

#include "base/collective.hpp"
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
  int window = 0;  // messages in flight, 0: any number
};

// As many as a step can tell apart.
inline int segment_count(int wanted) { return wanted < 1 ? 1 : wanted > 0xffff ? 0xffff : wanted; }

// Operands, by collective. Where a slice is not listed for a member, it is not used.
//   bcast           in: the root's vector, at the root; out: everybody's. At the root usually the same slice.
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
    commutative = 1,   // serves operations that commute only
    whole_parts = 2,   // moves several parts in one message: not to be segmented
    equal_parts = 4,   // not for the v-forms
    every_length = 8,  // every member must know the lengths of all parts, also where MPI tells them to the root alone
  };
  Collective collective;  // the regular form, which stands for the v-form as well
  const char* name;
  Emit emit;
  std::uint8_t needs;
  int k;        // the parameter's default, 0: it has none, -1: a rule of its own
  bool window;  // heeds Parameters::window

  [[nodiscard]] bool serves(bool is_commutative, bool has_equal_parts) const {
    return (is_commutative || !(needs & commutative)) && (has_equal_parts || !(needs & equal_parts));
  }
  [[nodiscard]] bool segmentable() const { return !(needs & whole_parts) && collective != Collective::barrier; }
};
std::span<const Algorithm> manifest();
// Null if there is none. The v-form of a collective finds its regular form's algorithms.
const Algorithm* find_algorithm(Collective collective, const char* name);

// One collective call as one rank sees it. Lengths are units; vectors have `count`, parts of the regular forms too.
struct Problem {
  Collective collective = Collective::barrier;
  int size = 1;
  int rank = 0;
  int root = 0;
  bool in_place = false;
  bool commutative = false;
  bool in_order = false;  // from left to right in rank order alone
  std::uint64_t count = 0;
  const std::uint64_t* begins = nullptr;  // v-forms and reduce_scatter: size + 1 offsets of the parts;
  const std::uint64_t* sent_begins =
      nullptr;  // alltoallv: `begins` are those of the parts received, these of those sent
};

// How long the caller's buffers are for this rank, in units: what a binding must have behind them.
struct Extent {
  std::uint64_t send, receive;
};
Extent extent(const Problem& problem);

// The schedule of problem.rank. Needs the time of its own steps, and no table of ranks but what the problem brings.
Schedule build(Builder& builder, const Algorithm& algorithm, const Problem& problem, const Parameters& parameters);
// The problem as a call on a group of all ranks, and then in segments; for those who compose.
Call whole_call(Builder& builder, const Problem& problem, const Parameters& parameters);
void emit_segments(Builder& builder, const Algorithm& algorithm, const Call& call);
// Puts in its place what could not go there before everything was read.
void finish_in_place(Builder& builder, const Problem& problem, const Call& call);

// The collective whose algorithms serve this one: gatherv is gather's, reduce_scatter_block reduce_scatter's.
Collective regular_form(Collective collective);
bool has_root(Collective collective);

}  // namespace stretto::coll
