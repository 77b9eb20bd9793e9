// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/overlap_trial.hpp"

#include <gtest/gtest.h>

namespace stretto::mpi {
namespace {

// Calls that take so long from one to the next, each way. How many of the first `calls` went with.
int with_overlap(Trial& trial, int calls, std::uint64_t without_ns, std::uint64_t with_ns) {
  std::uint64_t now = 1000;
  int with = 0;
  for (int i = 0; i < calls; ++i) {
    const Trial::Next next = trial.begins(now);
    bool goes = next == Trial::Next::with;
    if (next == Trial::Next::compare) goes = trial.decide(trial.medians());
    with += goes ? 1 : 0;
    now += (goes ? with_ns : without_ns) + (i % 5 == 3 ? 50'000 : 0);  // now and then one takes long
  }
  return with;
}

TEST(Trial, KeepsWhatMakesTheProgramFaster) {
  Trial trial(Collective::alltoall, 1000);
  EXPECT_EQ(with_overlap(trial, 40, 1000, 900), 35);
}

TEST(Trial, GivesUpWhatDoesNotWithinElevenCalls) {
  for (const std::uint64_t with_ns : {980, 1000, 3000}) {
    Trial trial(Collective::bcast, 0);
    EXPECT_EQ(with_overlap(trial, 40, 1000, with_ns), 5) << with_ns;
  }
}

TEST(Trial, TriesAgainAfterManyCalls) {
  Trial trial(Collective::bcast, 0);
  EXPECT_EQ(with_overlap(trial, 2 * static_cast<int>(Trial::kAgainAfter), 1000, 1000), 10);
}

TEST(Trials, KindsAreApart) {
  Trials trials;
  Trial* const one = trials.find(Collective::alltoall, 1000);
  EXPECT_NE(trials.find(Collective::alltoall, 2000), one);
  EXPECT_NE(trials.find(Collective::alltoallv, 1000), one);
  EXPECT_EQ(trials.find(Collective::alltoall, 1000), one);
}

}  // namespace
}  // namespace stretto::mpi
