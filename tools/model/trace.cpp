// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "report.hpp"
#include "sched/goal.hpp"

namespace stretto::modelling {
namespace {

void write_step(Json& json, const sched::Timer::View& step, std::uint32_t index, bool critical) {
  json.open('{');
  json.key("step").integer(index);
  json.key("rank").integer(step.rank);
  json.key("kind").text(sched::kKindNames[static_cast<int>(step.kind)]);
  json.key("segment").integer(step.segment);
  json.key("path").integer(step.path);
  json.key("bytes").integer(static_cast<std::int64_t>(step.bytes));
  json.key("begin").number(step.begin);
  json.key("end").number(step.end);
  json.key("overhead").number(step.overhead);
  json.key("wire").number(step.latency + step.bytes_time);
  json.key("partner");
  step.partner == sched::Timer::kNone ? json.null() : json.integer(step.partner);
  json.key("critical").boolean(critical);
  json.key("waited").boolean(step.cause == sched::Cause::message);
  json.close('}');
}

select::Candidate only_candidate(const Request& request, const select::Machine& machine) {
  if (request.algorithms.size() != 1) stop("one --algorithm, please");
  if (request.shape.root >= request.shape.ranks)
    stop("--root: there are ranks 0 to " + std::to_string(request.shape.ranks - 1));
  return candidate_of(request, machine, request.shape, request.algorithms[0]);
}

}  // namespace

void trace(const Request& request) {
  topo::Hierarchies place;
  const select::Machine machine = make_machine(request, request.shape.ranks, place);
  const select::Candidate candidate = only_candidate(request, machine);
  expect(machine, request.shape, candidate);
  sched::Timer timer;
  if (!select::time(timer, machine, request.shape, candidate)) stop(timer.failure());
  const sched::CriticalPath path = sched::critical_path(timer);
  std::vector<bool> critical(timer.steps());
  for (const std::uint32_t step : path.steps) critical[step] = true;
  Json json;
  json.open('{');
  json.key("name").text(candidate.name());
  json.key("ranks").integer(request.shape.ranks);
  json.key("time").number(timer.end());
  write_path(json, path);
  json.key("steps").open('[');
  for (std::uint32_t i = 0; i < timer.steps(); ++i) write_step(json, timer.step(i), i, critical[i]);
  json.close(']');
  json.close('}');
  json.end();
}

void write_goal(const Request& request) {
  topo::Hierarchies place;
  const select::Machine machine = make_machine(request, request.shape.ranks, place);
  const select::Candidate candidate = only_candidate(request, machine);
  sched::Builder builder;
  sched::GoalWriter writer(stdout, 1, machine.costs);
  writer.begin(request.shape.ranks);
  for (int r = 0; r < request.shape.ranks; ++r)
    writer.rank(r, select::build(builder, machine, request.shape, candidate, r));
}

namespace {

void explain_call(Json& json, const select::Machine& machine, const topo::Hierarchies& place,
                  const select::Shape& shape) {
  json.open('{');
  json.key("ranks").integer(shape.ranks);
  json.key("bytes").integer(static_cast<std::int64_t>(shape.bytes));
  json.key("levels").open('[');
  for (int level = 0; level < place.all.levels(); ++level) json.text(place.all.name(level).text);
  json.close(']');
  json.key("candidates").open('[');
  for (const select::Estimate& estimate : select::estimates(machine, shape)) {
    json.open('{');
    json.key("algorithm").text(estimate.candidate.key());
    json.key("k").integer(estimate.candidate.parameters.k);
    json.key("segments").integer(estimate.candidate.parameters.segments);
    json.key("name").text(estimate.candidate.name());
    json.key("time").number(estimate.time);
    write_path(json, estimate.path);
    json.close('}');
  }
  json.close(']');
  // Over shared memory, beside what is built in.
  json.key("shared_memory").open('[');
  for (const coll_shm::Algorithm& each : coll_shm::manifest()) {
    const bool other = &each != &coll_shm::algorithm_of(shape.collective, shape.bytes, {shape.ranks});
    const bool in_groups = each.path == coll_shm::DataPath::tiers || each.path == coll_shm::DataPath::rails;
    const bool exists = !in_groups || shape.ranks >= kTuning.tiers_from_ranks;
    if (each.collective == coll::regular_form(shape.collective) && other && exists)
      json.text(std::string(coll_shm::kPrefix) + each.name);
  }
  json.close(']');
  json.close('}');
}

}  // namespace

void explain(const Request& request) {
  Json json;
  json.open('{');
  json.key("calls").open('[');
  for (const int ranks : request.ranks) {
    topo::Hierarchies place;
    const select::Machine machine = make_machine(request, ranks, place);
    for (const std::uint64_t bytes : request.bytes) {
      select::Shape shape = request.shape;
      shape.ranks = ranks;
      shape.bytes = bytes;
      explain_call(json, machine, place, shape);
    }
  }
  json.close(']');
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
