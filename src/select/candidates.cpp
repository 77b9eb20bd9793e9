// SPDX-License-Identifier: BSD-3-Clause
#include "select/candidates.hpp"

#include <algorithm>
#include <cstring>

#include "sched/symmetry.hpp"
#include "select/reduce_forms.hpp"

namespace stretto::select {
namespace {

using coll::Algorithm;
using coll::Form;

constexpr const char* kBys[] = {"chain",     "ring", "halving_doubling", "recursive_multiplying",
                                "circulant", "bine", "pairwise"};
constexpr char kBy[] = " by=";
constexpr std::uint64_t kSegmentBytes[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
constexpr int kMostSegments = 64;

coll::HierarchyPlan plan_of(const topo::Hierarchy& hierarchy, Collective collective, const Candidate& candidate) {
  coll::HierarchyPlan plan;
  plan.segments = candidate.parameters.segments;
  plan.form = candidate.composition->form;
  plan.as_chain = candidate.composition->over == Selection::Over::chain;
  plan.node_level = node_level(hierarchy);
  if (candidate.by) {
    for (const Collective each : {Collective::bcast, Collective::reduce, collective}) plan.choose(each, candidate.by);
  }
  return plan;
}

// Whether some part of a composition has an algorithm of this name.
bool goes_by(Collective collective, const CompositionName& composition, const char* name) {
  if (coll::regular_form(collective) == Collective::alltoall)
    return std::strcmp(name, "pairwise") == 0 || std::strcmp(name, "linear") == 0;
  if (!coll::has_chain(collective)) return false;
  const bool back = composition.form == Form::reduce_bcast,
             levels = composition.over != Selection::Over::chain && composition.form != Form::rails;
  // By reduces and bcasts.
  const bool moves = collective == Collective::allreduce && (back || levels);
  return (!back && coll::find_algorithm(collective, name)) || (moves && coll::find_algorithm(Collective::bcast, name));
}

std::vector<int> segment_counts(std::uint64_t bytes) {
  std::vector<int> counts{1};
  for (const std::uint64_t each : kSegmentBytes) {
    const std::uint64_t count = bytes / each;
    if (count > 1 && count <= kMostSegments) counts.push_back(static_cast<int>(count));
  }
  return counts;
}

// By the model, by the practical rule, and Open MPI's number.
std::vector<int> chain_counts(const Machine& machine, const Shape& shape) {
  return {best_chain_count(machine, shape), kchain_practical_k(shape.ranks), 4};
}

std::vector<int> arities(const Machine& machine, const Shape& shape, const Algorithm& algorithm) {
  if (algorithm.k == 0) return {0};
  std::vector<int> ks = algorithm.k < 0 ? chain_counts(machine, shape) : std::vector<int>{2, 3, 4, 8, 16};
  if (std::strstr(algorithm.name, "nomial") || std::strstr(algorithm.name, "multiplying"))
    ks = {3, 4, 8, 16};  // 2 has an algorithm of its own
  std::erase_if(ks, [&](int k) { return k < 1 || k >= std::max(3, shape.ranks); });
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  return ks;
}

bool serves(const Algorithm& algorithm, const Shape& shape) {
  return algorithm.collective == coll::regular_form(shape.collective) && algorithm.serves(shape.commutative, true);
}

void add_flat(std::vector<Candidate>& all, const Machine& machine, const Shape& shape, const Algorithm& algorithm) {
  for (const int k : arities(machine, shape, algorithm)) {
    for (const int segments : segment_counts(shape.bytes)) {
      if (segments > 1 && !algorithm.segmentable()) break;
      all.push_back({&algorithm, {segments, k, 0}});
    }
  }
}

// Whether a composition differs from the first one.
bool is_another(const topo::Hierarchies& hierarchies, const Shape& shape, const Candidate& candidate) {
  switch (candidate.composition->over) {
    case Selection::Over::nodes:
      // Shapes have parts of one length.
      if (candidate.composition->form == Form::carriers) return false;
      return hierarchies.nodes.levels() > 1 && hierarchies.nodes.levels() < hierarchies.all.levels();
    // A chain in rank order is an algorithm on all ranks.
    case Selection::Over::chain:
      return (shape.commutative || shape.collective == Collective::bcast) &&
             (!hierarchies.all.keeps_rank_order() || shape.root != 0);
    default:
      return candidate.composition->form != Form::stripes ||
             coll::stripe_count(hierarchies.all, plan_of(hierarchies.all, shape.collective, candidate)) > 1;
  }
}

void add_compositions(std::vector<Candidate>& all, const Machine& machine, const Shape& shape) {
  for (const CompositionName& composition : kCompositions) {
    const auto candidate = [&](int segments, const char* by) {
      return Candidate{nullptr, {segments, 0, 0}, &composition, by};
    };
    if (!serves(composition, shape.collective) || !is_another(*machine.hierarchies, shape, candidate(1, nullptr)))
      continue;
    for (const int segments : segment_counts(shape.bytes)) {
      all.push_back(candidate(segments, nullptr));
      for (const char* const by : kBys) {
        if (goes_by(shape.collective, composition, by)) all.push_back(candidate(segments, by));
      }
    }
  }
}

// The steps of all ranks, estimated from a few ranks: the first, the last, one in the middle. The
// root does not count.
std::uint64_t steps_needed(sched::Builder& builder, const Machine& machine, const Shape& shape,
                           const Candidate& candidate) {
  std::size_t most = 0;
  for (const int rank : {0, shape.ranks / 2, shape.ranks - 1}) {
    const std::size_t steps = build(builder, machine, shape, candidate, rank).steps.size();
    most = rank == shape.root ? most : std::max(most, steps);
  }
  return static_cast<std::uint64_t>(most) * static_cast<std::uint64_t>(shape.ranks);
}

const topo::Hierarchy* all_levels(const Machine& machine) {
  return machine.hierarchies ? &machine.hierarchies->all : nullptr;
}

}  // namespace

coll::Problem problem_of(const Shape& shape, int rank) {
  coll::Problem problem;
  problem.collective = shape.collective;
  problem.size = shape.ranks;
  problem.rank = rank;
  problem.root = shape.root;
  problem.commutative = shape.commutative;
  problem.count = shape.bytes;
  return problem;
}

LogP logp_of(const Machine& machine, const Shape& shape) {
  const int outermost = machine.hierarchies ? machine.hierarchies->all.levels() - 1 : 0;
  const sched::LogGP& p = machine.costs.paths[outermost].at(shape.bytes);
  const auto m = static_cast<double>(shape.bytes);
  const double bytes_time = shape.bytes > 1 ? p.byte_gap * (m - 1) : 0;
  return {.o = (p.send_overhead + p.receive_overhead + (p.send_byte + p.receive_byte) * m) / 2,
          .L = p.latency + bytes_time,
          .g = p.gap + bytes_time,
          .combine = machine.costs.reduce.at(shape.bytes).over(shape.bytes)};
}

int best_chain_count(const Machine& machine, const Shape& shape) {
  return kchain_best_k(logp_of(machine, shape), shape.ranks);
}

std::string Candidate::key() const {
  const std::string name = algorithm ? algorithm->name : composition->text;
  return by ? name + kBy + by : name;
}

std::string Candidate::name() const {
  std::string text = key();
  if (parameters.k > 0) text += " k=" + std::to_string(parameters.k);
  if (parameters.segments > 1) text += " segments=" + std::to_string(parameters.segments);
  return text;
}

sched::Schedule build(sched::Builder& builder, const Machine& machine, const Shape& shape, const Candidate& candidate,
                      int rank) {
  const coll::Problem problem = problem_of(shape, rank);
  if (candidate.algorithm) return coll::build(builder, *candidate.algorithm, problem, candidate.parameters);
  const topo::Hierarchy& levels = levels_of(candidate.composition->over, *machine.hierarchies);
  return coll::build_hierarchical(builder, levels, plan_of(levels, shape.collective, candidate), problem);
}

bool time(sched::Timer& timer, const Machine& machine, const Shape& shape, const Candidate& candidate,
          const double* starts, int period) {
  const sched::Timer::Job job{
      .ranks = shape.ranks, .hierarchy = all_levels(machine), .starts = starts, .period = period};
  return timer.run(job, machine.costs,
                   [&](sched::Builder& builder, int rank) { return build(builder, machine, shape, candidate, rank); });
}

int period_of(sched::Builder& builder, const Machine& machine, const Shape& shape, const Candidate& candidate) {
  const int period = sched::period_of(all_levels(machine), machine.costs, shape.ranks);
  if (2 * period > shape.ranks || coll::has_root(shape.collective)) return 0;
  // Ranks of the second period, of one in the middle and of the last. Where ranks differ, those at
  // the ends have a neighbour less, or parts of another length.
  const int bases[] = {period, shape.ranks / period / 2 * period, shape.ranks - period};
  int ranks[] = {0, period / 2, period - 1};
  for (const int rank : std::span(ranks, std::unique(std::begin(ranks), std::end(ranks)))) {
    sched::Schedule first = build(builder, machine, shape, candidate, rank);
    const bool same = std::all_of(std::begin(bases), std::end(bases), [&](int base) {
      sched::Schedule other = build(builder, machine, shape, candidate, base + rank);
      const bool does = sched::does_the_same(first, rank, other, base + rank, shape.ranks);
      builder.recycle(std::move(other));
      return does;
    });
    builder.recycle(std::move(first));
    if (!same) return 0;
  }
  return period;
}

std::vector<Candidate> candidates(const Machine& machine, const Shape& shape) {
  std::vector<Candidate> all;
  for (const Algorithm& algorithm : coll::manifest()) {
    if (serves(algorithm, shape)) add_flat(all, machine, shape, algorithm);
  }
  if (machine.hierarchies && machine.hierarchies->all.levels() > 1) add_compositions(all, machine, shape);
  return all;
}

std::vector<Estimate> estimates(const Machine& machine, const Shape& shape, std::uint64_t most_steps) {
  std::vector<Estimate> all;
  sched::Timer timer;
  sched::Builder builder;
  for (const Candidate& candidate : candidates(machine, shape)) {
    if (steps_needed(builder, machine, shape, candidate) > most_steps) continue;
    if (!time(timer, machine, shape, candidate)) continue;
    Estimate estimate{candidate, timer.end(), critical_path(timer)};
    estimate.path.steps = {};
    all.push_back(std::move(estimate));
  }
  std::stable_sort(all.begin(), all.end(), [](const Estimate& a, const Estimate& b) { return a.time < b.time; });
  return all;
}

bool named_candidate(const Shape& shape, const char* key, Candidate* candidate) {
  *candidate = {};
  candidate->algorithm = coll::find_algorithm(shape.collective, key);
  if (candidate->algorithm) return true;
  const char* const by = std::strstr(key, kBy);
  const std::string name(key, by ? static_cast<std::size_t>(by - key) : std::strlen(key));
  const CompositionName* const composition = find_composition(shape.collective, name.c_str());
  if (!composition) return false;
  candidate->composition = composition;
  if (!by) return true;
  for (const Algorithm& algorithm : coll::manifest()) {  // this name outlives the key
    if (std::strcmp(algorithm.name, by + std::strlen(kBy)) == 0 &&
        goes_by(shape.collective, *composition, algorithm.name))
      candidate->by = algorithm.name;
  }
  return candidate->by != nullptr;
}

}  // namespace stretto::select
