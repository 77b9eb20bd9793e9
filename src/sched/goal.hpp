// SPDX-License-Identifier: BSD-3-Clause
// Schedules as GOAL text (group operation assembly language). The LogGOPSim family of simulators
// reads it:
//
//   num_ranks 2
//   rank 0 {
//   l1: send 8b to 1 tag 0
//   l2: calc 40
//   l2 requires l1
//   }
//
// A recv_reduce becomes a receive and a calculation after it. Calculations are in nanoseconds, of
// `costs`. The tag is the message's index among those of its pair and direction. As in the timer,
// processor 0 of a rank does everything.
#pragma once
#include <cstdio>

#include "sched/costs.hpp"
#include "sched/schedule.hpp"

namespace stretto::sched {

class GoalWriter {
 public:
  GoalWriter(std::FILE* to, std::uint64_t unit_bytes, const Costs& costs)
      : to_(to), unit_bytes_(unit_bytes), costs_(costs) {}
  void begin(int ranks) { std::fprintf(to_, "num_ranks %d\n", ranks); }
  void rank(int rank, const Schedule& schedule);

 private:
  void step(std::size_t index, const Step& step);

  std::FILE* to_;
  std::uint64_t unit_bytes_;
  const Costs& costs_;
};

}  // namespace stretto::sched
