// SPDX-License-Identifier: BSD-3-Clause
// Schedules as GOAL text (group operation assembly language), which the LogGOPSim family of simulators reads:
//
//   num_ranks 2
//   rank 0 {
//   l1: send 8b to 1 tag 0
//   l2: calc 40
//   l2 requires l1
//   }
//
// A recv_reduce is a receive and a calculation after it; calculations are in nanoseconds, of `costs`. The number of a
// message among those of its pair and direction is its tag. A rank's processor 0 does everything, as in the timer.
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
