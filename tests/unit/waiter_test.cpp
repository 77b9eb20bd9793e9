// SPDX-License-Identifier: BSD-3-Clause
// How often a waiting rank looks, drives the host, yields and naps. Only these actions advance the
// clock.
#include "shm/waiter.hpp"

#include <gtest/gtest.h>

using namespace stretto;
using namespace stretto::shm;

namespace {

// The machine: what happened on it, and when.
struct Machine {
  std::uint64_t now = 1;
  int pokes = 0, yields = 0, naps = 0;
  std::uint64_t poke_ns = 100, yield_ns = 500;  // how long each takes
  int served_from = 0, served_until = 0;        // pokes that serve a peer take longer
};
Machine machine;

constexpr std::uint64_t kLookNs = 20, kServingPokeNs = 20'000;
constexpr WaitSystem kFake = {
    [] { return machine.now += kLookNs; },
    [] { ++machine.yields, machine.now += machine.yield_ns; },
    [](std::uint64_t ns) { ++machine.naps, machine.now += ns; },
};

void poke(void*) {
  const int number = ++machine.pokes;
  machine.now += number > machine.served_from && number <= machine.served_until ? kServingPokeNs : machine.poke_ns;
}

WaitPolicy policy_for(bool crowded) {
  machine = {};
  WaitPolicy policy;
  policy.poke = &poke;
  policy.system = &kFake;
  if (crowded) policy.crowd();
  return policy;
}

// Makes steps, each followed by a look, until so much time has passed. Returns their number.
int steps_until(Waiter& waiter, std::uint64_t ns) {
  int steps = 0;
  for (; machine.now < ns; ++steps) waiter.step();
  return steps;
}

constexpr std::uint64_t kOldNs = 2 * kTuning.nap_after_ns;  // a wait of this age naps

// The wait is old. From here on pokes, yields and naps are counted anew.
void grow_old(Waiter& waiter) {
  steps_until(waiter, kOldNs);
  machine.pokes = machine.yields = machine.naps = 0;
}

// A host that yields gives every other rank of the node a turn in each poke. A look comes after
// every poke.
TEST(Wait, LooksAfterEveryPoke) {
  for (const bool crowded : {false, true}) {
    const WaitPolicy policy = policy_for(crowded);
    machine.poke_ns = 100'000;  // a round of 64 ranks on two processors
    Waiter waiter(policy);
    grow_old(waiter);
    const int steps = steps_until(waiter, 10 * kOldNs);
    EXPECT_LE(machine.pokes, steps + machine.naps) << crowded;  // one more poke wakes the host after a nap
    EXPECT_GE(machine.pokes, steps) << crowded;
  }
}

TEST(Wait, NapsAfterEveryFewPokesThatFindNothing) {
  for (const bool crowded : {false, true}) {
    const WaitPolicy policy = policy_for(crowded);
    Waiter waiter(policy);
    grow_old(waiter);
    steps_until(waiter, 10 * kOldNs);
    EXPECT_NEAR(machine.pokes / machine.naps, kTuning.pokes_per_nap, 2) << crowded;
    EXPECT_EQ(machine.yields, 0) << crowded;
  }
}

TEST(Wait, DoesNotNapWhileItServesSomebody) {
  const WaitPolicy policy = policy_for(false);
  Waiter waiter(policy);
  grow_old(waiter);
  machine.served_until = 1000;
  int steps = 0;
  for (; machine.pokes < machine.served_until; ++steps) waiter.step();
  EXPECT_LE(machine.naps, 1000 * kServingPokeNs / kTuning.serve_limit_ns + 1);  // now and then it naps nevertheless
  EXPECT_GE(steps, machine.pokes - machine.naps);
}

// A poke that takes long may have given the processor away. Its duration then says nothing.
TEST(Wait, NapsWhereProcessorsAreShort) {
  const WaitPolicy policy = policy_for(true);
  Waiter waiter(policy);
  grow_old(waiter);
  machine.served_until = 6400;
  while (machine.pokes < machine.served_until) waiter.step();
  EXPECT_GE(machine.naps, machine.served_until / static_cast<int>(kTuning.pokes_per_nap) - 2);
}

TEST(Wait, NapsAtEveryStepWithoutAHost) {
  WaitPolicy policy = policy_for(true);
  policy.poke = nullptr;
  Waiter waiter(policy);
  grow_old(waiter);
  EXPECT_EQ(steps_until(waiter, 2 * kOldNs), machine.naps);
}

// Where processors are short, a short wait drives the host seldom. A host that yields would cost it
// a round of all ranks each time.
TEST(Wait, DrivesTheHostSeldomAtFirstWhereProcessorsAreShort) {
  const WaitPolicy policy = policy_for(true);
  Waiter waiter(policy);
  for (std::uint32_t step = 0; step < policy.seldom_until; ++step) waiter.step();
  EXPECT_LE(machine.pokes, static_cast<int>((policy.seldom_until - policy.spins) / kTuning.crowded_steps_per_poke + 1));
  EXPECT_GT(machine.pokes, 0);
}

// A process with windows does what the host's own wait does. Where a poke takes long, the first
// ones are rationed.
TEST(Wait, ServesWindowsAtEveryStep) {
  WaitPolicy policy = policy_for(false);
  policy.poke_every = 30;
  std::atomic<int> windows{1};
  policy.has_windows = &windows;
  Waiter waiter(policy);
  for (std::uint32_t step = 0; step < policy.bare_spins; ++step) waiter.step();
  EXPECT_EQ(machine.pokes, 0);
  for (std::uint32_t step = policy.bare_spins; step < policy.spins; ++step) waiter.step();
  EXPECT_EQ(machine.pokes, static_cast<int>((policy.spins - policy.bare_spins) / policy.poke_every));
  machine.pokes = 0;
  const int steps = steps_until(waiter, 10 * kOldNs);
  EXPECT_EQ(machine.pokes, steps);
  EXPECT_EQ(machine.naps, 0);
  EXPECT_EQ(machine.yields, 0);
}

TEST(Wait, NapsWithoutWindowsAndWhereProcessorsAreShort) {
  for (const bool crowded : {false, true}) {
    WaitPolicy policy = policy_for(crowded);
    std::atomic<int> windows{crowded ? 1 : 0};
    policy.has_windows = &windows;
    Waiter waiter(policy);
    grow_old(waiter);
    steps_until(waiter, 10 * kOldNs);
    EXPECT_GT(machine.naps, 0) << crowded;
  }
}

}  // namespace
