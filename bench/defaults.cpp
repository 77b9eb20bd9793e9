// SPDX-License-Identifier: BSD-3-Clause
// What is built in between nodes beside the best candidate, by the timer, among many nodes.
//   cmake --build build/release --target defaults
//   build/release/defaults NODES RANKS_EACH [OP [BYTES...]]
// A row: collective, bytes, the time of what is built in, the best candidate and its time, and the
// ratio. Candidates of more than kMostSteps steps are left out. The machine is a round one: nodes
// with a port of 12.5 GB/s each.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "select/candidates.hpp"

namespace {

using namespace stretto;

constexpr std::uint64_t kMostSteps = 4'000'000;

// In ns, as python/stretto/model/profiles/qdr.toml, with a faster network.
sched::Costs costs_of(const topo::Hierarchy& hierarchy) {
  const int node = select::node_level(hierarchy);
  sched::Costs costs;
  for (int level = 0; level <= topo::kMostLevels; ++level) {
    sched::LogGP& path = costs.paths[level].piece[0];
    path = level <= node
               ? sched::LogGP{.latency = 250,
                              .send_overhead = 100,
                              .receive_overhead = 100,
                              .gap = 120,
                              .send_byte = 0.1,
                              .receive_byte = 0.1}
               : sched::LogGP{
                     .latency = 1000, .send_overhead = 250, .receive_overhead = 250, .gap = 200, .byte_gap = 0.08};
  }
  costs.reduce.piece[0] = {.fixed = 10, .per_byte = 0.1};
  costs.copy.piece[0] = {.fixed = 5, .per_byte = 0.05};
  costs.ports[node + 1] = {.there = true, .gap = 20, .byte_gap = 0.08};
  return costs;
}

// Levels of nodes, and of leaf switches of 32 nodes.
topo::Hierarchies hierarchies_of(int nodes, int each) {
  topo::Placement placement;
  topo::Hierarchies hierarchies;
  placement.start(nodes * each);
  const bool built = placement.add_level_of("node", each) && placement.add_level_of("leaf", std::int64_t{32} * each) &&
                     hierarchies.build(placement);
  if (!built) std::exit(1);
  return hierarchies;
}

struct Row {
  std::string name;
  double time_ns = 0;
};

class Rows {
 public:
  Rows(int nodes, int each) : hierarchies_(hierarchies_of(nodes, each)) {
    machine_ = {&hierarchies_, costs_of(hierarchies_.all)};
    traits_ = {.ranks = nodes * each, .nodes = nodes};
    traits_.place(hierarchies_);
  }

  void show(Collective collective, std::uint64_t bytes) {
    const select::Shape shape{.collective = collective, .ranks = traits_.ranks, .bytes = bytes};
    const Row built_in = time_built_in(shape);
    Row best = built_in;
    for (const select::Candidate& candidate : select::candidates(machine_, shape)) {
      if (is_long(shape, candidate)) continue;
      const int period = select::period_of(builder_, machine_, shape, candidate);
      if (!select::time(timer_, machine_, shape, candidate, nullptr, period)) continue;
      if (timer_.end() < best.time_ns) best = {candidate.name(), timer_.end()};
    }
    std::printf("%s,%llu,%d,%d,%s,%.1f,%s,%.1f,%.3f\n", kCollectiveNames[static_cast<int>(collective)],
                static_cast<unsigned long long>(bytes), traits_.nodes, traits_.ranks / traits_.nodes,
                built_in.name.c_str(), built_in.time_ns, best.name.c_str(), best.time_ns,
                built_in.time_ns / best.time_ns);
    std::fflush(stdout);
  }

 private:
  Row time_built_in(const select::Shape& shape) {
    const std::uint64_t whole = shape.bytes;  // of collectives with one vector
    const select::Selection& selection = select::selection_across_nodes(shape.collective, traits_, whole);
    const sched::Timer::Job job{.ranks = shape.ranks, .hierarchy = &hierarchies_.all};
    const bool timed = timer_.run(job, machine_.costs, [&](sched::Builder& builder, int rank) {
      return select::schedule_of(builder, selection, hierarchies_, traits_, whole, select::problem_of(shape, rank));
    });
    if (!timed) std::exit(1);
    std::string name = selection.over == select::Selection::Over::nodes ? "nodes"
                       : selection.is_flat()                            ? "ranks"
                                                                        : "levels";
    for (const char* const by : {selection.down, selection.up, selection.across})
      name += std::string(" ") + (by ? by : "-");
    return {name, timer_.end()};
  }

  bool is_long(const select::Shape& shape, const select::Candidate& candidate) {
    std::size_t most = 0;
    for (const int rank : {1, shape.ranks / 2, shape.ranks - 1}) {
      sched::Schedule schedule = select::build(builder_, machine_, shape, candidate, rank);
      most = schedule.steps.size() > most ? schedule.steps.size() : most;
      builder_.recycle(std::move(schedule));
    }
    return most * static_cast<std::uint64_t>(shape.ranks) > kMostSteps;
  }

  topo::Hierarchies hierarchies_;
  select::Machine machine_;
  select::CommTraits traits_;
  sched::Timer timer_;
  sched::Builder builder_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Rows rows(std::atoi(argv[1]), std::atoi(argv[2]));
  std::vector<Collective> collectives = {Collective::barrier, Collective::bcast, Collective::reduce,
                                         Collective::allreduce};
  if (argc > 3) collectives = {collective_named(argv[3])};
  std::vector<std::uint64_t> lengths;
  for (int i = 4; i < argc; ++i) lengths.push_back(std::strtoull(argv[i], nullptr, 10));
  if (lengths.empty()) lengths = {8, 1 << 10, 16 << 10, 128 << 10, 1 << 20};
  for (const Collective collective : collectives) {
    for (const std::uint64_t bytes : lengths) {
      rows.show(collective, collective == Collective::barrier ? 0 : bytes);
      if (collective == Collective::barrier) break;
    }
  }
}
