// SPDX-License-Identifier: BSD-3-Clause
// How many messages are on their way to one place at a time. A send is posted when its dependencies
// are met: from then on a network may carry it. It is on its way until its receive begins. Where
// many senders have messages for one port, its switch has to hold them, or loses some (incast).
#include <algorithm>
#include <vector>

#include "report.hpp"

namespace stretto::modelling {
namespace {

struct Change {
  double time;
  int place;  // a rank, or a domain
  std::int64_t messages, bytes;
};

struct Most {
  std::int64_t messages = 0, bytes = 0;
};

Most most_at_once(std::vector<Change>& changes, int places) {
  // What leaves goes before what comes.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.messages < b.messages;
  });
  std::vector<Most> now(static_cast<std::size_t>(places));
  Most most;
  for (const Change& change : changes) {
    Most& here = now[static_cast<std::size_t>(change.place)];
    here.messages += change.messages;
    here.bytes += change.bytes;
    most.messages = std::max(most.messages, here.messages);
    most.bytes = std::max(most.bytes, here.bytes);
  }
  return most;
}

// Since when each step of a rank might begin, by the numbers of the timer's steps.
void add_ready(std::vector<double>& ready, const sched::Timer& timer, const sched::Schedule& schedule, int rank) {
  std::vector<std::uint32_t> order(schedule.steps.size()), number(schedule.steps.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return schedule.steps[a].priority < schedule.steps[b].priority;
  });
  const std::uint32_t first = timer.first_step(rank);
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = first + i;
  ready.resize(first + order.size(), timer.rank(rank).start);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const sched::Step& step = schedule.steps[i];
    for (std::uint32_t d = 0; d < step.dependencies; ++d) {
      const double met = timer.step(number[schedule.dependencies[step.first_dependency + d]]).end;
      ready[number[i]] = std::max(ready[number[i]], met);
    }
  }
}

}  // namespace

void write_posted(Json& json, const sched::Timer& timer, const select::Machine& machine, const select::Shape& shape,
                  const select::Candidate& candidate) {
  std::vector<double> ready;
  sched::Builder builder;
  for (int rank = 0; rank < shape.ranks; ++rank)
    add_ready(ready, timer, select::build(builder, machine, shape, candidate, rank), rank);
  const topo::Hierarchy* const tree = machine.hierarchies ? &machine.hierarchies->all : nullptr;
  json.key("posted").open('[');
  for (int level = -1; level < (tree ? tree->levels() - 1 : 0); ++level) {
    std::vector<Change> changes;
    for (std::uint32_t i = 0; i < timer.steps(); ++i) {
      const sched::Timer::View step = timer.step(i);
      if (step.kind != sched::Kind::send || step.path <= level) continue;
      const sched::Timer::View receive = timer.step(step.partner);
      const int place = level < 0 ? receive.rank : tree->group_over(receive.rank, level) - tree->group_on(level, 0);
      const auto bytes = static_cast<std::int64_t>(step.bytes);
      changes.push_back({ready[i], place, 1, bytes});
      changes.push_back({std::max(ready[i], receive.begin), place, -1, -bytes});
    }
    const Most most = most_at_once(changes, level < 0 ? shape.ranks : tree->groups_on(level));
    json.open('{');
    json.key("level").text(level < 0 ? "rank" : tree->name(level).text);
    json.key("messages").integer(most.messages);
    json.key("bytes").integer(most.bytes);
    json.close('}');
  }
  json.close(']');
}

}  // namespace stretto::modelling
