// SPDX-License-Identifier: BSD-3-Clause
// Runs every lock scheme with processes, and tries the check itself on locks that do not exclude.
#include "../../bench/kv/correctness.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "../../bench/kv/modes.hpp"

using namespace stretto::kv;
using namespace stretto::kv::bench;

namespace {

const bool kLong = std::getenv("STRETTO_TEST_LONG") != nullptr;

TEST(KvCorrectness, ReadersMeetWriterIsAloneCountersAreExact) {
  any_scheme([](auto tag) {
    for (const unsigned clients : {1u, 2u, 3u, 8u, 64u}) {
      if (kLong && clients == 1) continue;
      const Trial trial{.clients = clients, .sections = kLong ? 1'000'000u : 50'000u, .seed = 7};
      EXPECT_EQ(check<decltype(tag)::template Of>(trial), "") << tag.name << " with " << clients << " clients";
    }
    return false;
  });
}

TEST(KvCorrectness, AMutexKeepsReadersApart) {
  EXPECT_EQ(check<PlainMutex>({.clients = 2, .sections = 100, .meeting_ns = 200'000'000}),
            "readers do not meet inside the section");
}

TEST(KvCorrectness, ALockThatDoesNothingIsFoundOut) {
  const std::string failure = check<Dummy>({.clients = 2, .sections = 200'000});
  EXPECT_NE(failure.find("half of a change"), std::string::npos) << failure;
}

// A bound writer forks the readers, so they inherit its one processor.
TEST(KvBench, WriterAndReadersHaveProcessorsOfTheirOwn) {
  const int most = CPU_COUNT(&processors());
  if (most < 2) GTEST_SKIP() << "one processor";
  const auto where = [] {
    cpu_set_t now;
    EXPECT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    return now;
  };
  const unsigned clients = static_cast<unsigned>(most) - 1;
  {
    const Bound bound(clients);
    const cpu_set_t writers = where();
    EXPECT_EQ(CPU_COUNT(&writers), 1);
    Crew crew;
    for (unsigned i = 0; i < clients; ++i) {
      crew.add([&, i] {
        bind(i + 1, clients + 1);
        const cpu_set_t mine = where();
        cpu_set_t both;
        CPU_AND(&both, &mine, &writers);
        if (CPU_COUNT(&mine) != 1 || CPU_COUNT(&both) != 0) _exit(1);
      });
    }
    EXPECT_TRUE(crew.wait());
  }
  EXPECT_EQ(CPU_COUNT(&processors()), most);
  const cpu_set_t after = where();
  EXPECT_EQ(CPU_COUNT(&after), most);
}

}  // namespace
