// SPDX-License-Identifier: BSD-3-Clause
#include <sys/resource.h>

#include <chrono>

#include "report.hpp"

namespace stretto::modelling {
namespace {

struct Run {
  const char* name;
  int ranks;
  select::Shape shape;
  select::Candidate candidate;
  const char* levels;
};

// A common kind of cluster. Times are in nanoseconds.
sched::Costs some_costs() {
  sched::Costs costs = sched::Costs::uniform(
      {.latency = 1500, .send_overhead = 300, .receive_overhead = 300, .gap = 200, .byte_gap = 0.08}, 0.1, 0.05);
  costs.paths[0].piece[0].latency = 300;
  return costs;
}

void run(Json& json, const Run& what) {
  topo::Hierarchies place;
  topo::Placement placement;
  placement.start(what.ranks);
  if (what.levels) placement.add_level_of(what.levels, 64);
  place.build(placement);
  const select::Machine machine{place.all.levels() > 1 ? &place : nullptr, some_costs()};
  sched::Timer timer;
  const auto begin = std::chrono::steady_clock::now();
  if (!select::time(timer, machine, what.shape, what.candidate)) stop(timer.failure());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  json.open('{');
  json.key("name").text(what.name);
  json.key("ranks").integer(what.ranks);
  json.key("steps").integer(static_cast<std::int64_t>(timer.steps()));
  json.key("events").integer(static_cast<std::int64_t>(timer.events()));
  json.key("time").number(timer.end());
  json.key("seconds").number(seconds);
  json.key("steps_per_second").number(static_cast<double>(timer.steps()) / seconds);
  json.key("events_per_second").number(static_cast<double>(timer.events()) / seconds);
  json.key("peak_bytes").integer(usage.ru_maxrss * 1024);
  json.close('}');
}

}  // namespace

void benchmark() {
  const auto algorithm = [](Collective collective, const char* name) { return coll::find_algorithm(collective, name); };
  const Run runs[] = {
      {"reduce, binomial",
       1 << 20,
       {Collective::reduce, 1 << 20, 8},
       {algorithm(Collective::reduce, "binomial"), {}},
       nullptr},
      {"allreduce, hierarchy, 32 segments",
       4096,
       {Collective::allreduce, 4096, 1 << 20},
       {nullptr, {32, 0, 0}},
       "node"},
      {"bcast, chain, 64 segments",
       1 << 14,
       {Collective::bcast, 1 << 14, 1 << 20},
       {algorithm(Collective::bcast, "chain"), {64, 0, 0}},
       nullptr},
      {"alltoall, linear",
       1024,
       {Collective::alltoall, 1024, 64},
       {algorithm(Collective::alltoall, "linear"), {}},
       nullptr},
  };
  Json json;
  json.open('{');
  json.key("runs").open('[');
  for (const Run& each : runs) run(json, each);
  json.close(']');
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
