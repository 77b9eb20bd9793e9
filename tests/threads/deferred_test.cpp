// SPDX-License-Identifier: BSD-3-Clause
// Calls whose data are under way, while others read of them: a note that is read is of one call.
#include "shm/deferred.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace stretto::test {
namespace {

using shm::DeferredCall;

// A call's words say which it is: each is a multiple of its number.
void make_calls(shm::DeferredNotes& notes, std::uint64_t first, int calls) {
  shm::DeferredWriter writer;
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t word = first + static_cast<std::uint64_t>(i);
    DeferredCall call;
    std::memcpy(call.name, &word, sizeof word);
    call.communicator = call.call = call.began_ns = word;
    call.ranks = static_cast<std::uint32_t>(word);
    writer.take(&notes, call);
    const std::uint32_t part = writer.part(static_cast<int>(word), false, 100);
    writer.put();
    // The driver's thread counts what has come, and another one waits.
    std::jthread driver([&] {
      for (int step = 0; step < 5; ++step) writer.came(part, 10);
      writer.touched(word, static_cast<int>(word));
    });
    writer.waits(shm::DeferredWait::function, word);
    driver.join();
    writer.returns(word);
    writer.give_back();
  }
}

TEST(DeferredNotes, AreReadWhileTheyAreWritten) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kCalls = 500;
#else
  constexpr int kCalls = 3000;
#endif
  constexpr int kWriters = 3;
  const auto notes = std::make_unique<shm::DeferredNotes>();
  std::atomic<int> at_work = kWriters;
  std::atomic<std::uint64_t> seen = 0, wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < kWriters; ++w) {
      threads.emplace_back([&, w] {
        make_calls(*notes, static_cast<std::uint64_t>(w + 1) << 20, kCalls);
        --at_work;
      });
    }
    threads.emplace_back([&] {
      while (at_work != 0) {
        shm::each_deferred(*notes, [&](const DeferredCall& call) {
          std::uint64_t name = 0;
          std::memcpy(&name, call.name, sizeof name);
          const bool is_one = name == call.call && call.communicator == call.call && call.began_ns == call.call &&
                              (call.returned_ns == 0 || call.returned_ns == call.call) && call.part_count == 1 &&
                              call.parts[0].peer == static_cast<int>(call.call) && call.parts[0].bytes >= 50 &&
                              (call.waits_since_ns == 0 || call.waits_since_ns == call.call);
          wrong += is_one ? 0 : 1;
          ++seen;
        });
        std::this_thread::yield();
      }
    });
  }
  EXPECT_EQ(wrong, 0u) << "of " << seen;
  DeferredCall last;
  for (const shm::DeferredNote& note : notes->of) EXPECT_FALSE(shm::deferred_read(note, &last));
}

}  // namespace
}  // namespace stretto::test
