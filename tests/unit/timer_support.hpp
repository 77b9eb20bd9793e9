// SPDX-License-Identifier: BSD-3-Clause
// Jobs for the timer, and a second timer that is slow and simple: it looks at everything, again and
// again.
#pragma once
#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "coll/hierarchy/compose.hpp"
#include "coll/postcondition.hpp"
#include "sched/timer.hpp"

namespace stretto::test {

using coll::Problem;
using sched::Builder;
using sched::Costs;
using sched::Schedule;
using sched::Timer;

inline Problem problem_of(Collective collective, int size, int rank, std::uint64_t count, int root = 0,
                          bool commutative = true) {
  Problem problem;
  problem.collective = collective;
  problem.size = size;
  problem.rank = rank;
  problem.root = root;
  problem.commutative = commutative;
  problem.count = count;
  return problem;
}

// Times an algorithm of the manifest.
inline bool time_algorithm(Timer& timer, const Costs& costs, Collective collective, const char* name, int ranks,
                           std::uint64_t count, const coll::Parameters& parameters = {}, int root = 0,
                           bool commutative = true) {
  const coll::Algorithm* const algorithm = coll::find_algorithm(collective, name);
  return timer.run({.ranks = ranks}, costs, [&](Builder& b, int rank) {
    return coll::build(b, *algorithm, problem_of(collective, ranks, rank, count, root, commutative), parameters);
  });
}

// A machine of two levels, as one hierarchy or as topo::Hierarchies.
template <class Built = topo::Hierarchy>
Built nodes_of(int ranks, int each, int nodes_of_leaf = 1 << 20) {
  topo::Placement placement;
  placement.start(ranks);
  EXPECT_TRUE(placement.add_level_of("node", each) &&
              placement.add_level_of("leaf", std::int64_t{each} * nodes_of_leaf));
  Built built;
  EXPECT_TRUE(built.build(placement));
  return built;
}

using Random = std::mt19937_64;
inline int below(Random& random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

// Whole numbers, so that many things happen at the same time and sums are exact.
inline Costs random_costs(Random& random) {
  Costs costs;
  for (auto& path : costs.paths) {
    path.count = 1 + below(random, 2);
    for (int i = 0; i < path.count; ++i) {
      path.piece[i] = {.from_bytes = 7.0 * i,
                       .latency = 1.0 + below(random, 9),
                       .send_overhead = 1.0 + below(random, 4),
                       .receive_overhead = 1.0 + below(random, 4),
                       .gap = 1.0 * below(random, 12),
                       .byte_gap = 1.0 * below(random, 3),
                       .send_byte = 1.0 * below(random, 2),
                       .receive_byte = 1.0 * below(random, 2),
                       .handling = 1.0 * below(random, 4),
                       .handling_byte = 1.0 * below(random, 2)};
    }
  }
  costs.reduce.piece[0] = {0, 1.0 * below(random, 3), 1.0 * below(random, 3)};
  costs.copy.piece[0] = {0, 1, 1.0 * below(random, 3)};
  costs.gap_rule = below(random, 2) ? sched::GapRule::any_two : sched::GapRule::per_direction;
  for (int i = 0; i < 3; ++i) {
    if (below(random, 2))
      costs.ports[i] = {.there = true,
                        .gap = 1.0 * below(random, 5),
                        .byte_gap = 1.0 * below(random, 4),
                        .burst_bytes = 3.0 * below(random, 4)};
  }
  if (below(random, 3) == 0)
    costs.processors = {.count = 1 + below(random, 3), .level = below(random, 2) - 1, .turn = 1.0 * below(random, 9)};
  return costs;
}

class SlowTimer {
 public:
  struct State {
    sched::Step step;
    bool begun = false;
    double begin = 0, end = 0;
    double first_byte = kNever, arrival = kNever;
    bool landed = false;
  };
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  SlowTimer(std::vector<Schedule> schedules, const Costs& costs, const topo::Hierarchy* hierarchy)
      : schedules_(std::move(schedules)), costs_(costs), hierarchy_(hierarchy), ranks_(schedules_.size()) {
    states_.resize(schedules_.size());
    for (std::size_t r = 0; r < schedules_.size(); ++r) {
      for (const sched::Step& step : schedules_[r].steps) states_[r].push_back({.step = step});
    }
    processors_.resize(static_cast<std::size_t>(costs.processors.count *
                                                (by_domain() ? hierarchy->groups_on(costs.processors.level) : 1)));
  }

  // The time of every step's end, by rank.
  const std::vector<std::vector<State>>& run() {
    for (std::size_t r = 0; r < states_.size(); ++r) {
      for (const State& state : states_[r]) {
        if (state.step.receives()) ranks_[r].handling += handling(static_cast<int>(r), state.step);
      }
    }
    for (double now = 0; now != kNever; now = next_time(now)) {
      land_all(now);
      for (std::size_t r = 0; r < states_.size(); ++r) take_turn(static_cast<int>(r), now);
      for (bool goes_on = true; goes_on;) {  // after a step that takes no time, the next one follows at once
        goes_on = false;
        for (std::size_t r = 0; r < states_.size(); ++r) goes_on |= begin_one(static_cast<int>(r), now);
      }
    }
    return states_;
  }

 private:
  struct Rank {
    double free = 0, next[2] = {}, port = 0, handling = 0, turn = 0;
  };
  struct Port {
    double out = 0, in = 0;
  };

  int path(int a, int b) const {
    int level = 0;
    while (hierarchy_ && hierarchy_->group_over(a, level) != hierarchy_->group_over(b, level)) ++level;
    return level;
  }
  bool by_domain() const { return hierarchy_ && costs_.processors.level >= 0; }
  int crowd_of(int rank) const {
    return by_domain() ? hierarchy_->group_over(rank, costs_.processors.level) -
                             hierarchy_->group_on(costs_.processors.level, 0)
                       : 0;
  }
  double& processor_of(int rank) {
    const auto first = processors_.begin() + crowd_of(rank) * costs_.processors.count;
    return *std::min_element(first, first + costs_.processors.count);
  }
  bool is_crowded_out(int rank, double now) { return !processors_.empty() && processor_of(rank) > now; }
  void take_processor(int rank, double until) {
    if (!processors_.empty()) processor_of(rank) = until;
  }
  int at_work_beside(int rank) const {
    int count = 0;
    for (std::size_t r = 0; r < states_.size(); ++r) {
      count += crowd_of(static_cast<int>(r)) == crowd_of(rank) && !std::ranges::all_of(states_[r], &State::begun);
    }
    return count;
  }
  // A rank that has nothing to do when its message comes looks when its turn comes.
  void take_turn(int r, double now) {
    Rank& self = ranks_[static_cast<std::size_t>(r)];
    if (processors_.empty() || self.free >= now) return;
    bool comes = false, has_work = false;
    for (const State& state : states_[static_cast<std::size_t>(r)]) {
      if (!ready(r, state, now)) continue;
      const bool is_new = state.step.receives() && state.arrival == now;
      (is_new ? comes : has_work) = true;
    }
    if (comes && !has_work && at_work_beside(r) > costs_.processors.count) self.turn = now + costs_.processors.turn;
  }
  // The ports that a message goes through.
  std::vector<int> port_levels(int a, int b) const {
    std::vector<int> levels;
    for (int i = 0; i <= path(a, b); ++i) {
      if (costs_.ports[i].there) levels.push_back(i);
    }
    return levels;
  }
  bool shares(int a, int b) const { return !port_levels(a, b).empty(); }
  double pass(double Port::* way, int rank, const sched::Step& s, double time) {
    const auto port = [&](int level) -> double& {
      return ports_[{level, level == 0 ? rank : hierarchy_->group_over(rank, level - 1)}].*way;
    };
    for (const int level : port_levels(rank, s.peer)) {
      const sched::Port& p = costs_.ports[level];
      const double in_the_long_run =
          std::max(port(level), time) + bytes_time(p.byte_gap, s) - p.byte_gap * p.burst_bytes;  // the last byte
      time = std::max(time,
                      in_the_long_run - p.byte_gap * std::max(0.0, static_cast<double>(s.length) - 1 - p.burst_bytes));
    }
    for (const int level : port_levels(rank, s.peer)) {
      port(level) = std::max(port(level), time) + costs_.ports[level].gap + bytes_time(costs_.ports[level].byte_gap, s);
    }
    return time;
  }
  const sched::LogGP& parameters(int rank, const sched::Step& s) const {
    return costs_.paths[path(rank, s.peer)].at(s.length);
  }
  double bytes_time(double each, const sched::Step& s) const {
    return s.length > 1 ? each * static_cast<double>(s.length - 1) : 0;
  }
  double wire_time(int rank, const sched::Step& s) const {
    double longest = bytes_time(parameters(rank, s).byte_gap, s);
    for (const int level : port_levels(rank, s.peer)) {
      const sched::Port& port = costs_.ports[level];
      longest = std::max(longest, port.byte_gap * std::max(0.0, static_cast<double>(s.length) - 1 - port.burst_bytes));
    }
    return longest;
  }
  static double work(const sched::Pieces<sched::Work>& pieces, const sched::Step& s) {
    return pieces.at(s.length).fixed + pieces.at(s.length).per_byte * static_cast<double>(s.length);
  }
  double processor(int rank, const sched::Step& s) const {
    if (s.kind == sched::Kind::copy) return work(costs_.copy, s);
    if (s.kind == sched::Kind::reduce) return work(costs_.reduce, s);
    const sched::LogGP& p = parameters(rank, s);
    const auto m = static_cast<double>(s.length);
    if (s.kind == sched::Kind::send) return p.send_overhead + p.send_byte * m;
    return p.receive_overhead + p.receive_byte * m + (s.kind == sched::Kind::recv_reduce ? work(costs_.reduce, s) : 0);
  }
  double handling(int rank, const sched::Step& s) const {
    return parameters(rank, s).handling + parameters(rank, s).handling_byte * static_cast<double>(s.length);
  }
  State& partner(int rank, const sched::Step& s) {
    for (State& other : states_[static_cast<std::size_t>(s.peer)]) {
      if (other.step.receives() != s.receives() && other.step.is_message() && other.step.peer == rank &&
          other.step.message_index == s.message_index)
        return other;
    }
    std::abort();
  }

  bool ready(int rank, const State& state, double now) const {
    if (state.begun || (state.step.receives() && state.arrival > now)) return false;
    for (const std::uint32_t on : schedules_[static_cast<std::size_t>(rank)].dependencies_of(state.step)) {
      const State& before = states_[static_cast<std::size_t>(rank)][on];
      if (!before.begun || before.end > now) return false;
    }
    return true;
  }
  double may_begin(const Rank& self, const State& state, double now) const {
    if (!state.step.is_message()) return now;
    return std::max(now, self.next[state.step.receives()]);
  }
  State* chosen(int r, double now) {
    State* best = nullptr;
    const auto key = [&](const State& s) {
      return std::tuple(may_begin(ranks_[static_cast<std::size_t>(r)], s, now), s.step.kind != sched::Kind::send,
                        s.step.priority);
    };
    for (State& state : states_[static_cast<std::size_t>(r)]) {
      if (ready(r, state, now) && (!best || key(state) < key(*best))) best = &state;
    }
    return best;
  }
  // False: no step may begin now.
  bool begin_one(int r, double now) {
    Rank& self = ranks_[static_cast<std::size_t>(r)];
    if (self.free > now) return false;
    State* const state = chosen(r, now);
    const bool sends_now =
        state && state->step.kind == sched::Kind::send && may_begin(self, *state, now) <= now && self.turn <= now;
    if (self.handling > 0 && !sends_now) {
      if (is_crowded_out(r, now)) return false;
      self.free = now + self.handling;
      take_processor(r, self.free);
      self.handling = 0;
      return true;
    }
    if (!state || self.turn > now || may_begin(self, *state, now) > now || is_crowded_out(r, now)) return false;
    const sched::Step& s = state->step;
    state->begun = true;
    state->begin = now;
    state->end = self.free = now + processor(r, s);
    take_processor(r, self.free);
    if (!s.is_message()) return true;
    const bool receives = s.receives();
    self.next[receives] = now + parameters(r, s).gap + (receives ? 0 : bytes_time(parameters(r, s).byte_gap, s));
    if (costs_.gap_rule == sched::GapRule::any_two) self.next[!receives] = self.next[receives];
    if (receives) return true;
    self.handling += handling(r, s);
    double leaves = state->end;
    leaves = pass(&Port::out, r, s, leaves);
    partner(r, s).first_byte = leaves + parameters(r, s).latency;
    return true;
  }
  void land_all(double now) {
    for (std::size_t r = 0; r < states_.size(); ++r) {
      for (State& state : states_[r]) {
        if (state.landed || state.first_byte > now) continue;
        state.landed = true;
        Rank& self = ranks_[r];
        const auto rank = static_cast<int>(r);
        double begin =
            wire_time(rank, state.step) > 0 || shares(rank, state.step.peer) ? std::max(now, self.port) : now;
        begin = pass(&Port::in, rank, state.step, begin);
        state.arrival = begin + wire_time(rank, state.step);
        if (wire_time(rank, state.step) > 0 || shares(rank, state.step.peer)) self.port = state.arrival;
      }
    }
  }
  double next_time(double now) const {
    double next = kNever;
    const auto consider = [&](double time) {
      if (time > now) next = std::min(next, time);
    };
    for (const Rank& rank : ranks_)
      consider(rank.free), consider(rank.turn), consider(rank.next[0]), consider(rank.next[1]);
    for (const double free : processors_) consider(free);
    for (const auto& states : states_) {
      for (const State& state : states) consider(state.first_byte), consider(state.arrival);
    }
    return next;
  }

  std::vector<Schedule> schedules_;
  const Costs& costs_;
  const topo::Hierarchy* hierarchy_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Port> ports_;  // by level and group
  std::vector<double> processors_;
  std::vector<std::vector<State>> states_;
};

}  // namespace stretto::test
