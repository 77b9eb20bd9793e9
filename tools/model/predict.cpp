// SPDX-License-Identifier: BSD-3-Clause
#include <chrono>

#include "report.hpp"
#include "select/reduce_forms.hpp"

namespace stretto::modelling {
namespace {

// From so many ranks on, a few stand for all where they can.
constexpr int kManyRanks = 4096;

void write_ranks(Json& json, const sched::Timer& timer, int ranks, int timed) {
  json.key("per_rank").open('[');
  for (int r = 0; r < ranks; ++r) {
    const sched::RankTime& rank = timer.rank(r % timed);
    json.open('{');
    json.key("rank").integer(r);
    json.key("start").number(rank.start);
    json.key("end").number(rank.end);
    json.key("busy").number(rank.busy());
    json.key("idle").open('{');
    for (int i = 0; i < sched::kIdles; ++i) json.key(sched::kIdleNames[i]).number(rank.idle[i]);
    json.close('}');
    json.close('}');
  }
  json.close(']');
}

void write_means(Json& json, const sched::Timer& timer, int ranks) {
  double idle[sched::kIdles] = {}, busy = 0, early = 0;
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < sched::kIdles; ++i) idle[i] += timer.rank(r).idle[i] / ranks;
    busy += timer.rank(r).busy() / ranks;
    early += (timer.end() - timer.rank(r).end) / ranks;
  }
  json.key("mean").open('{');
  json.key("busy").number(busy);
  for (int i = 0; i < sched::kIdles; ++i) json.key(sched::kIdleNames[i]).number(idle[i]);
  json.key("done").number(early);
  json.close('}');
}

// How much leaves the domains of each level.
void write_crossings(Json& json, const sched::Timer& timer, const select::Machine& machine, std::int64_t each) {
  json.key("crossed").open('[');
  const int levels = machine.hierarchies ? machine.hierarchies->all.levels() - 1 : 0;
  std::int64_t messages[topo::kMostLevels + 1] = {}, bytes[topo::kMostLevels + 1] = {};
  for (std::uint32_t i = 0; i < timer.steps(); ++i) {
    const sched::Timer::View step = timer.step(i);
    if (step.kind != sched::Kind::send) continue;
    for (int level = 0; level < step.path; ++level) {
      messages[level] += each;
      bytes[level] += each * static_cast<std::int64_t>(step.bytes);
    }
  }
  for (int level = 0; level < levels; ++level) {
    json.open('{');
    json.key("level").text(machine.hierarchies->all.name(level).text);
    json.key("messages").integer(messages[level]);
    json.key("bytes").integer(bytes[level]);
    json.close('}');
  }
  json.close(']');
}

void predict_one(Json& json, const Request& request, const select::Machine& machine, const select::Shape& shape,
                 const std::string& name) {
  const select::Candidate candidate = candidate_of(request, machine, shape, name);
  static sched::Timer timer;
  static sched::Builder builder;
  const bool many = shape.ranks >= kManyRanks && !request.posted;
  const int period = many ? select::period_of(builder, machine, shape, candidate) : 0;
  const int timed = period > 0 ? period : shape.ranks;
  expect(machine, shape, candidate, period);
  const auto begin = std::chrono::steady_clock::now();
  if (!select::time(timer, machine, shape, candidate, nullptr, period)) stop(name + ": " + timer.failure());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  json.open('{');
  json.key("algorithm").text(name);
  json.key("name").text(candidate.name());
  json.key("ranks").integer(shape.ranks);
  json.key("bytes").integer(static_cast<std::int64_t>(shape.bytes));
  json.key("time").number(timer.end());
  json.key("steps").integer(static_cast<std::int64_t>(timer.steps()));
  if (period > 0) json.key("timed_ranks").integer(timed);
  json.key("seconds").number(seconds);
  write_path(json, sched::critical_path(timer));
  write_crossings(json, timer, machine, shape.ranks / timed);
  write_means(json, timer, timed);
  if (request.posted) write_posted(json, timer, machine, shape, candidate);
  if (request.per_rank) write_ranks(json, timer, shape.ranks, timed);
  json.close('}');
}

void chains_of(Json& json, const Request& request, int ranks, std::uint64_t bytes) {
  topo::Hierarchies place;
  const select::Machine machine = make_machine(request, ranks, place);
  select::Shape shape = request.shape;
  shape.collective = Collective::reduce;
  shape.ranks = ranks;
  shape.bytes = bytes;
  const select::LogP p = select::logp_of(machine, shape);
  const double steps = 2.0 * ranks;
  expect(steps * ranks, steps, "chains of every number of " + std::to_string(ranks) + " ranks");
  sched::Timer timer;
  json.open('{');
  json.key("ranks").integer(ranks);
  json.key("bytes").integer(static_cast<std::int64_t>(bytes));
  json.key("best_k").integer(select::kchain_best_k(p, ranks));
  json.key("practical_k").integer(select::kchain_practical_k(ranks));
  json.key("estimate_best_k").integer(select::kchain_estimate_best_whole_k(p.hop(), p.turn(), ranks));
  json.key("estimate_least").number(select::kchain_estimate_least(p.hop(), p.turn(), ranks));
  json.key("staggered").number(select::staggered_chains(p, ranks).time);
  json.key("points").open('[');
  for (int k = 1; k < ranks; ++k) {
    const select::Candidate candidate{coll::find_algorithm(Collective::reduce, "kchain"), {1, k, 0}};
    if (!select::time(timer, machine, shape, candidate)) stop(timer.failure());
    json.open('{');
    json.key("k").integer(k);
    json.key("estimate").number(select::kchain_estimate(p.hop(), p.turn(), ranks, k));
    json.key("form").number(select::kchain_root(p, ranks, k));
    json.key("time").number(timer.end());
    json.close('}');
  }
  json.close(']');
  json.close('}');
}

}  // namespace

void write_path(Json& json, const sched::CriticalPath& path) {
  json.key("critical").open('{');
  json.key("messages").integer(path.messages);
  json.key("overhead").number(path.overhead);
  json.key("latency").number(path.latency);
  json.key("bytes").number(path.bytes);
  json.key("port").number(path.port);
  json.key("gap").number(path.gap);
  json.key("crowd").number(path.crowd);
  json.key("reduce").number(path.reduce);
  json.key("copy").number(path.copy);
  json.close('}');
}

void predict(const Request& request) {
  Json json;
  json.open('{');
  json.key("predictions").open('[');
  for (const int ranks : request.ranks) {
    topo::Hierarchies place;
    const select::Machine machine = make_machine(request, ranks, place);
    for (const std::uint64_t bytes : request.bytes) {
      select::Shape shape = request.shape;
      shape.ranks = ranks;
      shape.bytes = bytes;
      if (shape.root >= ranks) stop("--root: there are ranks 0 to " + std::to_string(ranks - 1));
      for (const std::string& name : request.algorithms) predict_one(json, request, machine, shape, name);
    }
  }
  json.close(']');
  json.close('}');
  json.end();
}

void chains(const Request& request) {
  Json json;
  json.open('{');
  json.key("curves").open('[');
  for (const std::uint64_t bytes : request.bytes) {
    for (const int ranks : request.ranks) chains_of(json, request, ranks, bytes);
  }
  json.close(']');
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
