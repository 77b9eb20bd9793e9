// SPDX-License-Identifier: BSD-3-Clause
// What could serve a call, and how long each candidate would take by the model. Candidates are
// every algorithm of the manifest, with the parameters worth trying, and compositions over a
// hierarchy. All ranks find the same, since it follows from what all ranks know.
#pragma once
#include <string>
#include <vector>

#include "coll/hierarchy/compose.hpp"
#include "sched/critical_path.hpp"
#include "select/across_nodes.hpp"
#include "select/reduce_forms.hpp"

namespace stretto::select {

// A call, as far as a choice depends on it. `bytes` is the length of the vector, or of one rank's
// part.
struct Shape {
  Collective collective = Collective::barrier;
  int ranks = 1;
  std::uint64_t bytes = 0;
  int root = 0;
  bool commutative = true;
};

coll::Problem problem_of(const Shape& shape, int rank);

struct Candidate {
  const coll::Algorithm* algorithm = nullptr;  // null: the composition
  coll::Parameters parameters;
  const CompositionName* composition = kCompositions;  // over the levels, unless it says otherwise
  // Of a composition: the algorithm's name on each level, for those of bcasts, reduces and the
  // collective itself that have one of this name. Null: defaults.
  const char* by = nullptr;

  // The name for named_candidate() and rules (rules.hpp), without parameters: "kchain",
  // "hierarchy:rails by=ring".
  [[nodiscard]] std::string key() const;
  // The name with parameters: "kchain k=4 segments=8", "hierarchy:rails by=ring segments=4".
  [[nodiscard]] std::string name() const;
};

// Where the ranks are, and what steps cost there. No hierarchies: there are no levels.
struct Machine {
  const topo::Hierarchies* hierarchies = nullptr;
  sched::Costs costs;
};

// The schedule of one rank.
sched::Schedule build(sched::Builder& builder, const Machine& machine, const Shape& shape, const Candidate& candidate,
                      int rank);
// Runs all ranks' schedules in the timer, or those of the first `period` ranks, which stand for
// all. False: timer.failure() says why.
bool time(sched::Timer& timer, const Machine& machine, const Shape& shape, const Candidate& candidate,
          const double* starts = nullptr, int period = 0);
// How many ranks can stand for all (sched/symmetry.hpp). 0: each stands for itself. A few ranks of
// the job are compared step by step, not all.
int period_of(sched::Builder& builder, const Machine& machine, const Shape& shape, const Candidate& candidate);

// The outermost path's parameters for messages of this length, as the closed forms take them: the
// time of bytes counts as latency and as gap.
LogP logp_of(const Machine& machine, const Shape& shape);
// The number of chains of the fastest k-chain, by the closed forms.
int best_chain_count(const Machine& machine, const Shape& shape);

std::vector<Candidate> candidates(const Machine& machine, const Shape& shape);

struct Estimate {
  Candidate candidate;
  double time = 0;
  sched::CriticalPath path;  // without its steps
};
// All candidates that can be timed with at most so many steps, the fastest first.
std::vector<Estimate> estimates(const Machine& machine, const Shape& shape, std::uint64_t most_steps = 20'000'000);
// Finds a candidate by its key. Its parameters are defaults. False: there is none.
bool named_candidate(const Shape& shape, const char* key, Candidate* candidate);

}  // namespace stretto::select
