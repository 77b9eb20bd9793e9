// SPDX-License-Identifier: BSD-3-Clause
// What could serve a call, and how long each would take by the model: every algorithm of the manifest with the
// parameters worth trying, and compositions over a hierarchy. The same on all ranks, since everything here follows from
// what all ranks know.
#pragma once
#include <string>
#include <vector>

#include "coll/hierarchy/compose.hpp"
#include "sched/critical_path.hpp"
#include "select/across_nodes.hpp"
#include "select/reduce_forms.hpp"

namespace stretto::select {

// A call as far as a choice depends on it. Bytes: of the vector, or of one rank's part.
struct Shape {
  Collective collective = Collective::barrier;
  int ranks = 1;
  std::uint64_t bytes = 0;
  int root = 0;
  bool commutative = true;
};

struct Candidate {
  const coll::Algorithm* algorithm = nullptr;  // null: the composition
  coll::Parameters parameters;
  const CompositionName* composition = kCompositions;  // over the levels, unless it says otherwise
  // Of a composition: by what bcasts, reduces and the collective itself go on each level, those of them that have an
  // algorithm by this name. Null: by defaults.
  const char* by = nullptr;

  // What named_candidate knows it by, and rules (rules.hpp): "kchain", "hierarchy:rails by=ring"; without parameters.
  [[nodiscard]] std::string key() const;
  // With its parameters, as "kchain k=4 segments=8", "hierarchy:rails by=ring segments=4".
  [[nodiscard]] std::string name() const;
};

// Where and on what: null: no levels.
struct Machine {
  const topo::Hierarchies* hierarchies = nullptr;
  sched::Costs costs;
};

// The schedule of one rank.
sched::Schedule build(sched::Builder& builder, const Machine& machine, const Shape& shape, const Candidate& candidate,
                      int rank);
// Runs all ranks' schedules in the timer. False: timer.failure() tells why.
bool time(sched::Timer& timer, const Machine& machine, const Shape& shape, const Candidate& candidate,
          const double* starts = nullptr);

// The outermost path's parameters for messages of this length, as the closed forms take them: bytes count as latency
// and gap.
LogP logp_of(const Machine& machine, const Shape& shape);
// The number of chains of the fastest k-chain by them.
int best_chain_count(const Machine& machine, const Shape& shape);

std::vector<Candidate> candidates(const Machine& machine, const Shape& shape);

struct Estimate {
  Candidate candidate;
  double time = 0;
  sched::CriticalPath path;  // without its steps
};
// All candidates that can be timed with at most so many steps, the fastest first.
std::vector<Estimate> estimates(const Machine& machine, const Shape& shape, std::uint64_t most_steps = 20'000'000);
// A choice by its key; its parameters are defaults. False: there is no such algorithm.
bool named_candidate(const Shape& shape, const char* key, Candidate* candidate);

}  // namespace stretto::select
