// SPDX-License-Identifier: BSD-3-Clause
// What building a schedule costs one rank of a large job: flat algorithms, whose steps grow with
// the ranks, and what is built in for nodes of 128 ranks.
//   cmake --build build/release --target build-cost && build/release/build-cost [RANKS...]
// "work" is what the builder has looked at for each step (sched/builder.hpp). It must not grow with
// the ranks.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sched/execute.hpp"
#include "select/across_nodes.hpp"

namespace {

using namespace stretto;

double now_ms() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)) * 1e-6;
}

coll::Problem problem_of(Collective collective, int ranks, std::uint64_t count) {
  coll::Problem problem;
  problem.collective = collective;
  problem.size = ranks;
  problem.rank = coll::has_root(collective) ? 0 : 1;
  problem.count = count;
  problem.commutative = true;
  return problem;
}

void show(const char* name, const coll::Problem& problem, sched::Builder& builder, sched::Schedule schedule,
          double begin) {
  const double built = now_ms();
  const std::size_t steps = schedule.steps.size(), bytes = schedule.memory_bytes();
  sched::Program program;
  sched::Execution execution;
  const bool fine = program.prepare(std::move(schedule), 1) && execution.prepare(program);
  std::printf(
      "%9d ranks  %-10s %-20s %9zu steps %10.1f KiB %6.1f work a step  built in %9.3f ms, ready in %9.3f ms%s\n",
      problem.size, kCollectiveNames[static_cast<int>(problem.collective)], name, steps,
      static_cast<double>(bytes) / 1024,
      steps == 0 ? 0 : static_cast<double>(builder.work()) / static_cast<double>(steps), built - begin,
      now_ms() - begin, fine ? "" : "  NO MEMORY");
}

void flat(int ranks) {
  constexpr std::pair<Collective, const char*> kAlgorithms[] = {
      {Collective::gather, "flat"},     {Collective::scatter, "flat"},      {Collective::allgather, "ring"},
      {Collective::allgather, "bruck"}, {Collective::allreduce, "ring"},    {Collective::reduce_scatter, "ring"},
      {Collective::alltoall, "linear"}, {Collective::alltoall, "pairwise"}, {Collective::alltoall, "bruck"}};
  for (const auto& [collective, name] : kAlgorithms) {
    const coll::Algorithm* const algorithm = coll::find_algorithm(collective, name);
    const auto each = static_cast<std::uint64_t>(collective == Collective::allreduce ? ranks : 1);
    const coll::Problem problem = problem_of(collective, ranks, 8 * each);
    sched::Builder builder;
    const double begin = now_ms();
    show(name, problem, builder, coll::build(builder, *algorithm, problem, {}), begin);
  }
}

void built_in(int ranks) {
  constexpr int kEach = 128;
  topo::Placement placement;
  topo::Hierarchies hierarchies;
  placement.start(ranks);
  if (!placement.add_level_of("node", kEach) || !hierarchies.build(placement)) return;
  select::CommTraits traits{.ranks = ranks, .nodes = (ranks + kEach - 1) / kEach};
  traits.place(hierarchies);
  for (const Collective collective : {Collective::bcast, Collective::reduce, Collective::allreduce}) {
    for (const std::uint64_t bytes : {8, 1 << 20}) {
      const coll::Problem problem = problem_of(collective, ranks, bytes);
      sched::Builder builder;
      const double begin = now_ms();
      show(bytes == 8 ? "built in, 8 B" : "built in, 1 MiB", problem, builder,
           select::schedule_of(builder, select::selection_across_nodes(collective, traits, bytes), hierarchies, traits,
                               bytes, problem),
           begin);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(std::atoi(argv[i]));
  if (counts.empty()) counts = {1024, 16'384, 131'072};
  for (const int ranks : counts) {
    if (ranks < 2) continue;
    flat(ranks);
    built_in(ranks);
  }
}
