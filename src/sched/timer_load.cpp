// SPDX-License-Identifier: BSD-3-Clause
// The timer's first half: schedules come in, rank by rank. Steps find their costs and their
// partners.
#include <algorithm>

#include "sched/timer.hpp"

namespace stretto::sched {
namespace {

constexpr std::uint64_t kReceives = std::uint64_t{1} << 63;

std::uint64_t address_of(bool receives, std::uint32_t peer, std::uint32_t message_index) {
  return (receives ? kReceives : 0) | static_cast<std::uint64_t>(peer) << 32 | message_index;
}
std::uint32_t peer_of(std::uint64_t address) { return static_cast<std::uint32_t>((address & ~kReceives) >> 32); }

// How many ports each domain of a level has: a node has one for each of its network cards.
int ports_each(const topo::Hierarchy& hierarchy, int level) {
  int most = 1;
  for (int i = 0; i < hierarchy.groups_on(level) && hierarchy.name(level).is("node"); ++i) {
    most = std::max(most, hierarchy.carriers(hierarchy.group_on(level, i)));
  }
  return most;
}

double bytes_time(const LogGP& p, std::uint64_t bytes) {
  return bytes > 1 ? p.byte_gap * static_cast<double>(bytes - 1) : 0;
}

}  // namespace

void Timer::start(const Job& job, const Costs& costs) {
  job_ = job;
  model_ = costs;
  failure_ = nullptr;
  now_ = end_ = 0;
  events_ = 0;
  ports_are_taken_ = false;
  steps_.clear();
  successors_.clear();
  ranks_.clear();
  ready_.clear();
  costs_.clear();
  cost_places_.clear();
  ports_.clear();
  processors_.clear();
  at_work_.clear();
  flows_.clear();
  free_flow_ = kNone;
  queue_.clear();
  addresses_.clear();
  by_address_.clear();
  const int levels = job.hierarchy ? job.hierarchy->levels() : 1;
  for (int i = 0; i < levels; ++i) {
    first_port_[i] = static_cast<int>(ports_.size());
    const int domains = i == 0 ? job.timed_ranks() : job.hierarchy->groups_on(i - 1);
    ports_each_[i] = i == 0 ? 1 : ports_each(*job.hierarchy, i - 1);
    if (costs.ports[i].there) ports_.resize(ports_.size() + static_cast<std::size_t>(domains * ports_each_[i]), {});
  }
  const int crowds =
      job.hierarchy && costs.processors.level >= 0 ? job.hierarchy->groups_on(costs.processors.level) : 1;
  processors_.resize(static_cast<std::size_t>(crowds * costs.processors.count), 0);
  at_work_.resize(static_cast<std::size_t>(crowds), 0);
  ranks_.reserve(static_cast<std::size_t>(job.timed_ranks()) + 1);
  ranks_.push({});
}

bool Timer::fail(const char* what) {
  failure_ = what;
  return false;
}

// Finds the order in which the timer numbers the steps: by priority. Algorithms nearly always emit
// in that order.
void Timer::order(const Schedule& schedule) {
  const Array<Step>& steps = schedule.steps;
  const auto count = static_cast<std::uint32_t>(steps.size());
  order_.clear();
  bool sorted = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    order_.push(i);
    sorted = sorted && (i == 0 || steps[i - 1].priority <= steps[i].priority);
  }
  if (!sorted) {
    std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return steps[a].priority != steps[b].priority ? steps[a].priority < steps[b].priority : a < b;
    });
  }
  place_.resize(count, 0);
  for (std::uint32_t i = 0; i < count; ++i) place_[order_[i]] = i;
}

bool Timer::lower(const Schedule& schedule) {
  const auto rank = static_cast<std::uint32_t>(ranks_.size()) - 1;
  const auto first = static_cast<std::uint32_t>(steps_.size());
  const auto count = static_cast<std::uint32_t>(schedule.steps.size());
  order(schedule);
  fill_.clear();
  fill_.resize(count + 1, 0);
  for (const std::uint32_t on : schedule.dependencies) ++fill_[place_[on]];
  auto next = static_cast<std::uint32_t>(successors_.size());
  double handling = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Step& step = schedule.steps[order_[i]];
    const std::uint32_t successors = fill_[i];
    fill_[i] = next;
    const std::uint32_t pending = step.dependencies + (step.receives() ? 1 : 0);
    const std::uint32_t cost = cost_of(step);
    if (step.receives() && cost < costs_.size()) handling += costs_[cost].handling;
    steps_.push({cost, rank, kNone, next, pending, step.segment, step.kind, Cause::entry, 0});
    addresses_.push(step.is_message()
                        ? address_of(step.receives(), static_cast<std::uint32_t>(step.peer), step.message_index)
                        : ~std::uint64_t{0});
    by_address_.push(first + i);
    next += successors;
  }
  successors_.resize(next, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const std::uint32_t on : schedule.dependencies_of(schedule.steps[order_[i]]))
      successors_[fill_[place_[on]]++] = first + i;
  }
  sort_messages(first, first + count);
  Rank& self = ranks_[rank];
  self.left = count;
  self.time.start = self.time.end = self.free = job_.starts ? job_.starts[rank] : 0;
  self.handling = handling;
  self.wake = -1;
  const std::uint32_t words = kClasses * ((count + 63) / 64);
  Rank sentinel;
  sentinel.first_step = first + count;
  sentinel.first_word = self.first_word + words;
  ranks_.push(sentinel);
  ready_.resize(sentinel.first_word, 0);
  return !steps_.failed() && !successors_.failed() && !ranks_.failed() && !ready_.failed() && !addresses_.failed() &&
         !by_address_.failed() && !costs_.failed() && !cost_places_.failed();
}

void Timer::sort_messages(std::uint32_t first, std::uint32_t last) {
  std::sort(by_address_.begin() + first, by_address_.begin() + last,
            [this](std::uint32_t a, std::uint32_t b) { return addresses_[a] < addresses_[b]; });
}

// ---- Costs ----

int Timer::path(std::uint32_t rank, int peer) const {
  if (!job_.hierarchy) return 0;
  int level = 0;
  while (job_.hierarchy->group_over(static_cast<int>(rank), level) != job_.hierarchy->group_over(peer, level)) ++level;
  return level;
}

Timer::Cost Timer::make_cost(Kind kind, int path, std::uint64_t bytes) const {
  Cost cost{};
  cost.bytes = bytes;
  cost.kind = kind;
  cost.path = static_cast<std::uint8_t>(path);
  const auto m = static_cast<double>(bytes);
  if (kind == Kind::copy) cost.processor = model_.copy.at(bytes).over(bytes);
  if (kind == Kind::reduce) cost.processor = model_.reduce.at(bytes).over(bytes);
  if (kind == Kind::copy || kind == Kind::reduce) return cost;
  const LogGP& p = model_.paths[path].at(bytes);
  cost.overhead = kind == Kind::send ? p.send_overhead + p.send_byte * m : p.receive_overhead + p.receive_byte * m;
  cost.processor = cost.overhead + (kind == Kind::recv_reduce ? model_.reduce.at(bytes).over(bytes) : 0);
  cost.handling = p.handling + p.handling_byte * m;
  cost.latency = p.latency;
  cost.bytes_time = bytes_time(p, bytes);
  cost.interval = p.gap + (kind == Kind::send ? cost.bytes_time : 0);
  for (int i = 0; i <= path && !ports_.empty(); ++i) {
    const Port& port = model_.ports[i];
    if (!port.there) continue;
    cost.shared_port = true;
    cost.bytes_time = std::max(cost.bytes_time, port.through(bytes));
  }
  cost.takes_port = cost.shared_port || cost.bytes_time > 0;
  return cost;
}

std::uint32_t Timer::cost_of(const Step& step) {
  if (2 * (costs_.size() + 1) > cost_places_.size()) grow_costs();
  if (cost_places_.failed()) return 0;
  const auto rank = static_cast<std::uint32_t>(ranks_.size()) - 1;
  const int on = step.is_message() ? path(rank, step.peer) : 0;
  const std::uint64_t bytes = step.length * job_.unit_bytes;
  const std::size_t mask = cost_places_.size() - 1;
  std::size_t at =
      (bytes * 0x9e3779b97f4a7c15u >> 32) + static_cast<std::size_t>(on * kKinds) + static_cast<std::size_t>(step.kind);
  for (;; ++at) {
    std::uint32_t& place = cost_places_[at & mask];
    if (place == kNone) {
      place = static_cast<std::uint32_t>(costs_.size());
      costs_.push(make_cost(step.kind, on, bytes));
      ports_are_taken_ = ports_are_taken_ || costs_.back().takes_port;
      return place;
    }
    const Cost& cost = costs_[place];
    if (cost.bytes == bytes && cost.kind == step.kind && cost.path == on) return place;
  }
}

void Timer::grow_costs() {
  const std::size_t size = cost_places_.empty() ? 64 : 2 * cost_places_.size();
  cost_places_.clear();
  if (!cost_places_.resize(size, kNone)) return;
  for (std::uint32_t i = 0; i < costs_.size(); ++i) {
    const Cost& cost = costs_[i];
    std::size_t at = (cost.bytes * 0x9e3779b97f4a7c15u >> 32) + static_cast<std::size_t>(cost.path * kKinds) +
                     static_cast<std::size_t>(cost.kind);
    while (cost_places_[at & (size - 1)] != kNone) ++at;
    cost_places_[at & (size - 1)] = i;
  }
}

// ---- Partners ----

std::uint32_t Timer::find_receive(std::uint32_t rank, std::uint64_t address) const {
  const std::uint32_t* const begin = by_address_.data() + ranks_[rank].first_step;
  const std::uint32_t* const end = by_address_.data() + ranks_[rank + 1].first_step;
  const std::uint32_t* const found = std::lower_bound(
      begin, end, address, [this](std::uint32_t step, std::uint64_t wanted) { return addresses_[step] < wanted; });
  return found != end && addresses_[*found] == address ? *found : kNone;
}

bool Timer::match() {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    Timed& step = steps_[i];
    if (class_of(step.kind) == receives) ++received;
    if (class_of(step.kind) != sends) continue;
    ++sent;
    const std::uint32_t peer = peer_of(addresses_[i]), ranks = static_cast<std::uint32_t>(job_.ranks);
    if (peer >= ranks || peer == step.rank) return fail("a message to a rank that there is not");
    // The timed rank that stands for the peer, and who sends it what this rank sends the peer.
    const std::uint32_t receiver = peer % static_cast<std::uint32_t>(job_.timed_ranks());
    const std::uint32_t sender = (receiver + step.rank + ranks - peer) % ranks;
    step.partner = find_receive(receiver, address_of(true, sender, static_cast<std::uint32_t>(addresses_[i])));
    if (step.partner == kNone) return fail("a message that nobody receives");
    if (costs_[steps_[step.partner].cost].bytes != costs_[step.cost].bytes)
      return fail("a message of another length than expected");
    steps_[step.partner].partner = i;
  }
  Array<std::uint64_t>().swap(addresses_);
  Array<std::uint32_t>().swap(by_address_);
  return sent == received || fail("a message that nobody sends");
}

}  // namespace stretto::sched
