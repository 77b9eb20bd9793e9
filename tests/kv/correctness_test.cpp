// SPDX-License-Identifier: BSD-3-Clause
// Every lock scheme with processes; and the check itself against locks that are none.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../../bench/kv/correctness.hpp"

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
  EXPECT_EQ(check<PlainMutex>({.clients = 2, .sections = 100, .meeting_ns = 200'000'000}), "readers do not meet inside the section");
}

TEST(KvCorrectness, ALockThatDoesNothingIsFoundOut) {
  const std::string failure = check<Dummy>({.clients = 2, .sections = 200'000});
  EXPECT_NE(failure.find("half of a change"), std::string::npos) << failure;
}

}  // namespace
