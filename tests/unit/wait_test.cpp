// SPDX-License-Identifier: BSD-3-Clause
#include "shm/wait.hpp"

#include <gtest/gtest.h>

using namespace stretto;
using namespace stretto::shm;

namespace {

// A host that serves somebody step by step from its 20th poke to its last but 20.
struct Host {
  static constexpr int kIdle = 20;
  int pokes = 0, most = 0;
  bool serves = false;

  static void poke(void* self) { static_cast<Host*>(self)->poke(); }
  void poke() {
    ++pokes;
    const std::uint64_t length_ns = serves && pokes > kIdle && pokes <= most - kIdle ? 20'000 : 2'000;
    for (const std::uint64_t end = sys::now_ns() + length_ns; sys::now_ns() < end;) sys::cpu_relax();
  }
};

// Steps of a wait that is old enough for naps until the host was poked so often.
int steps_for(Host& host, bool crowded) {
  WaitPolicy policy;
  policy.bare_spins = policy.spins = 0;
  policy.yield_after_ns = policy.nap_after_ns = 0;
  policy.host = &host;
  policy.poke = &Host::poke;
  if (crowded) policy.crowd();
  Waiter waiter(policy);
  int steps = 0;
  for (; host.pokes < host.most; ++steps) waiter.step();
  return steps;
}

TEST(Wait, NapsBetweenManyPokesThatFindNothing) {
  Host host;
  host.most = 6000;
  EXPECT_LT(steps_for(host, false), host.most / 2);  // an interrupted poke looks like one that serves, and costs 25 steps
}

TEST(Wait, LooksAfterEachPokeThatServesSomebody) {
  Host host;
  host.most = 500;
  host.serves = true;
  EXPECT_GT(steps_for(host, false), host.most / 2);
}

// A poke that takes long may have given the processor away: then there is nothing to be seen in it.
TEST(Wait, NapsWhereProcessorsAreShort) {
  Host host;
  host.most = 3000;
  host.serves = true;
  EXPECT_LT(steps_for(host, true), host.most / 4);
}

}  // namespace
