// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/overlap_trial.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace stretto::mpi {
namespace {

struct Phase {
  std::uint64_t without_ns, with_ns, waited_ns = 0;  // of that with overlap: for data
};

// Calls between which the program computes by turns as `phases` say, with something else now and
// then. How many of the first `calls` went with overlap.
int with_overlap(Trial& trial, int calls, const std::vector<Phase>& phases, std::uint64_t now = 1000) {
  int with = 0;
  std::uint64_t waited = 0;
  for (int i = 0; i < calls; ++i) {
    const Trial::Next next = trial.begins(now, waited);
    bool goes = next == Trial::Next::with;
    if (next == Trial::Next::compare) goes = trial.decide(trial.times());
    with += goes ? 1 : 0;
    const Phase& phase = phases[static_cast<std::size_t>(i) % phases.size()];
    now += (goes ? phase.with_ns : phase.without_ns) + (i % 9 == 3 ? 50'000 : 0);
    waited += goes ? phase.waited_ns : 0;
  }
  return with;
}

constexpr int kFirst = static_cast<int>(Trial::kFirstAgain), kAgain = static_cast<int>(Trial::kAgain);
constexpr int kLost = static_cast<int>(Trial::kLostAgain);
constexpr int kLast = static_cast<int>(Trial::kLastAgain), kEach = static_cast<int>(Trial::kLaterCalls);

Trial trial_of(const TrialRule& rule) { return {Collective::alltoall, 1000, rule}; }

TEST(Trial, KeepsWhatMakesTheProgramFaster) {
  Trial by_auto = trial_of(kTrialOfAuto), by_on = trial_of(kTrialOfOn);
  EXPECT_EQ(with_overlap(by_auto, kFirst, {{1000, 900}}), kFirst - 4);
  EXPECT_EQ(with_overlap(by_on, kFirst, {{1000, 990}}), kFirst - 4);
}

TEST(Trial, GivesUpWhatDoesNotWithinTenCalls) {
  for (const std::uint64_t with_ns : {980, 1000, 1090}) {
    Trial trial = trial_of(kTrialOfAuto);
    EXPECT_EQ(with_overlap(trial, kFirst, {{1000, with_ns}}), 4) << with_ns;
  }
  Trial trial = trial_of(kTrialOfOn);
  EXPECT_EQ(with_overlap(trial, kFirst, {{1000, 1000}}), 4);
}

TEST(Trial, AutoGivesUpAGreatLossAfterTwoCalls) {
  Trial trial = trial_of(kTrialOfAuto);
  EXPECT_EQ(with_overlap(trial, kFirst, {{1000, 1200}}), 2);
}

TEST(Trial, OneCallThatTakesLongDecidesNothing) {
  for (std::uint64_t disturbed = 6; disturbed < 9; ++disturbed) {
    Trial trial = trial_of(kTrialOfAuto);
    std::uint64_t now = 0;
    bool goes = false;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const Trial::Next next = trial.begins(now, 0);
      goes = next == Trial::Next::compare ? trial.decide(trial.times()) : next == Trial::Next::with;
      now += (goes ? 900 : 1000) + (i == disturbed ? 100'000 : 0);
    }
    EXPECT_TRUE(goes) << disturbed;
  }
}

// A transform forth and back: which of them comes first must not matter.
TEST(Trial, PhasesByTurnsAreComparedWithThemselves) {
  for (const std::vector<Phase>& phases : {std::vector<Phase>{{1000, 1010}, {3000, 3000}},
                                           {{3000, 3000}, {1000, 1010}},
                                           {{1000, 1000}, {5000, 5010}, {9000, 9000}, {500, 500}}}) {
    Trial trial = trial_of(kTrialOfAuto);
    EXPECT_EQ(with_overlap(trial, kFirst, phases), 4);
  }
}

TEST(Trial, OneWaitForTheDataOfManyCallsCounts) {
  const Phase early{1000, 800}, last{1000, 2000, 1200};
  Trial trial = trial_of(kTrialOfOn);
  (void)with_overlap(trial, kFirst + 2 * kEach + 1, {early, early, early, last});
  EXPECT_EQ(with_overlap(trial, 100, {early, early, early, last}), 0);
}

TEST(Trial, WhatACallTakesOnceCountsForNeither) {
  Trial trial = trial_of(kTrialOfAuto);
  std::uint64_t now = 0;
  bool goes = false;
  for (int i = 0; i < 10; ++i) {
    const Trial::Next next = trial.begins(now, 0);
    goes = next == Trial::Next::compare ? trial.decide(trial.times()) : next == Trial::Next::with;
    if (i == 4) {
      now += 70'000;
      trial.leaves_out(70'000);
    }
    now += goes ? 900 : 1000;
  }
  EXPECT_TRUE(goes);
}

TEST(Trial, TriesAgainAfterManyCalls) {
  const int later = kAgain + 2 * kAgain + 4 * kAgain + 2 * kLast;
  Trial lost = trial_of(kTrialOfAuto);
  EXPECT_EQ(with_overlap(lost, kLost + later, {{1000, 1000}}), 4 + 5 * kEach);
  Trial kept = trial_of(kTrialOfAuto);
  EXPECT_EQ(with_overlap(kept, kFirst + later, {{1000, 800}}), kFirst + later - 4 - 5 * kEach);
}

TEST(Trial, GivesUpLaterWhatWasWorthItOnlyAtFirst) {
  Trial trial = trial_of(kTrialOfOn);
  EXPECT_EQ(with_overlap(trial, kFirst, {{1000, 900}}), kFirst - 4);
  EXPECT_EQ(with_overlap(trial, kAgain, {{1000, 1100}}, 1'000'000'000), kEach);
  EXPECT_EQ(with_overlap(trial, 2 * kAgain, {{1000, 900}}, 2'000'000'000), 2 * kAgain - kEach);
}

// Layers, or a transform of several arrays. The first trial sees a part of a turn.
TEST(Trial, LaterTrialsSeeWholeTurns) {
  for (const int turn : {2, 3, 6, 8, 12}) {
    std::vector<Phase> better, worse;
    for (int i = 0; i < turn; ++i) {
      better.push_back(i == turn - 1 ? Phase{9000, 8000} : Phase{1000, 900});
      worse.push_back(i == turn - 1 ? Phase{9000, 10000} : Phase{1000, 1100});
    }
    for (const TrialRule& rule : {kTrialOfOn, kTrialOfAuto}) {
      Trial gains = trial_of(rule), loses = trial_of(rule);
      (void)with_overlap(gains, kLost + 2 * kEach + 1, better);
      EXPECT_EQ(with_overlap(gains, 100, better), 100) << turn;
      (void)with_overlap(loses, kLost + 2 * kEach + 1, worse);
      EXPECT_EQ(with_overlap(loses, 100, worse), 0) << turn;
    }
  }
}

TEST(Trials, KindsAreApart) {
  Trials trials;
  const Trial& one = trials.find(Collective::alltoall, 1000, kTrialOfOn);
  EXPECT_NE(&trials.find(Collective::alltoall, 2000, kTrialOfOn), &one);
  EXPECT_NE(&trials.find(Collective::alltoallv, 1000, kTrialOfOn), &one);
  EXPECT_EQ(&trials.find(Collective::alltoall, 1000, kTrialOfOn), &one);
}

TEST(Trial, WhatAWayStillWaitsForCountsForIt) {
  for (const std::uint64_t late_ns : {100, 1000}) {
    Trial trial = trial_of(kTrialOfOn);
    std::uint64_t now = 1000;
    int with = 0;
    for (int call = 0; call < 9; ++call) {
      if (call == 4) {
        now += late_ns;
        trial.has_waited(late_ns);
      }
      const Trial::Next next = trial.begins(now, 0);
      with += next == Trial::Next::with || (next == Trial::Next::compare && trial.decide(trial.times())) ? 1 : 0;
      now += call < 4 ? 900 : 1000;
    }
    EXPECT_EQ(with, late_ns < 300 ? 5 : 4);
  }
}

TEST(Trial, AllDataComeBeforeAWayEnds) {
  for (const TrialRule& rule : {kTrialOfOn, kTrialOfAuto}) {
    Trial trial = trial_of(rule);
    std::vector<int> ends;
    std::uint64_t now = 1000;
    for (int call = 0; call < 160; ++call, now += 1000) {
      if (trial.ends_way()) ends.push_back(call);
      if (trial.begins(now, 0) == Trial::Next::compare) (void)trial.decide(trial.times());
    }
    EXPECT_EQ(ends, (std::vector<int>{4, 8, kLost, kLost + kEach, kLost + 2 * kEach}));
  }
}

}  // namespace
}  // namespace stretto::mpi
