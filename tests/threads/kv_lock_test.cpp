// SPDX-License-Identifier: BSD-3-Clause
// The lock schemes with threads as clients. A section guards plain memory where the scheme allows
// that, so TSan sees whether the scheme orders it.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "kv/lock/schemes.hpp"

using namespace stretto;
using namespace stretto::kv;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kWrites = 300;
#else
constexpr int kWrites = 2000;
#endif
constexpr int kWords = 8;

struct alignas(shm::kLineBytes) Line {
  char bytes[shm::kLineBytes];
};

// Words of a section. They are atomic where readers may see them change.
template <bool kOptimistic>
struct Word {
  std::uint64_t plain = 0;
  [[nodiscard]] std::uint64_t get() const { return plain; }
  void set(std::uint64_t value) { plain = value; }
};
template <>
struct Word<true> {
  shm::Atomic<std::uint64_t> atomic{};
  [[nodiscard]] std::uint64_t get() const { return atomic.load_relaxed(); }
  void set(std::uint64_t value) { atomic.store_relaxed(value); }
};

template <template <class> class Scheme>
void stress(unsigned readers) {
  constexpr bool kOptimistic = std::is_same_v<Scheme<Machine>, SeqLock<Machine>>;
  const std::size_t bytes = Lock<Scheme>::bytes(readers);
  auto memory = std::make_unique<Line[]>(bytes / sizeof(Line) + 1);
  Lock<Scheme> writer;
  writer.create(memory.get(), readers);
  Word<kOptimistic> words[kWords];
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0;
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < readers; ++r) {
    threads.emplace_back([&] {
      Lock<Scheme> lock;
      ASSERT_EQ(lock.attach(memory.get(), bytes), Status::ok);
      while (!stop) {  // a new entry now and then
        ASSERT_EQ(lock.join(1'000'000'000), Status::ok);
        for (int i = 0; i < 50 && !stop; ++i) {
          std::uint64_t seen[kWords];
          ASSERT_EQ(lock.read([&] {
            for (int w = 0; w < kWords; ++w) seen[w] = words[w].get();
          }),
                    Status::ok);
          for (int w = 1; w < kWords; ++w) torn += seen[w] != seen[0];
        }
        lock.leave();
      }
    });
  }
  for (int i = 1; i <= kWrites; ++i) {
    writer.write_enter();
    for (auto& word : words) word.set(i);
    writer.write_leave();
    if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(torn, 0) << Scheme<Machine>::kName << " with " << readers << " readers";
}

TEST(KvLock, ThreadsSeeWholeChanges) {
  any_scheme([](auto tag) {
    for (const unsigned readers : {1u, 4u}) stress<decltype(tag)::template Of>(readers);
    return false;
  });
}

// A reader that always comes too late falls back to its turn, and the writer still goes on.
TEST(KvLock, SeqlockGivesATurnToWhoIsAlwaysLate) {
  const std::size_t bytes = Lock<SeqLock>::bytes(1);
  auto memory = std::make_unique<Line[]>(bytes / sizeof(Line) + 1);
  Lock<SeqLock> writer;
  writer.create(memory.get(), 1);
  shm::Atomic<std::uint64_t> a{}, b{};
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> writes = 0;
  std::thread restless([&] {
    for (std::uint64_t i = 1; !stop; ++i, ++writes) {
      writer.write_enter();
      a.store_relaxed(i);
      b.store_relaxed(i);
      writer.write_leave();
    }
  });
  Lock<SeqLock> lock;
  ASSERT_EQ(lock.attach(memory.get(), bytes), Status::ok);
  ASSERT_EQ(lock.join(), Status::ok);
  for (int i = 0; i < 3; ++i) {
    std::uint64_t first = 0, second = 0;
    ASSERT_EQ(lock.read([&] {
      first = a.load_relaxed();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // thousands of writes long
      second = b.load_relaxed();
    }),
              Status::ok);
    EXPECT_EQ(first, second);
    const std::uint64_t after = writes;
    while (writes < after + 10) std::this_thread::yield();  // the writer goes on
  }
  stop = true;
  restless.join();
}

TEST(KvLock, EntriesAreTakenAndGivenBack) {
  const std::size_t bytes = Lock<NMcs>::bytes(2);
  auto memory = std::make_unique<Line[]>(bytes / sizeof(Line) + 1);
  Lock<NMcs> writer, a, b, c;
  writer.create(memory.get(), 2);
  for (auto* lock : {&a, &b, &c}) ASSERT_EQ(lock->attach(memory.get(), bytes), Status::ok);
  EXPECT_EQ(a.join(), Status::ok);
  EXPECT_EQ(b.join(), Status::ok);
  EXPECT_NE(a.index(), b.index());
  EXPECT_EQ(c.join(), Status::unavailable);
  a.leave();
  EXPECT_EQ(c.join(), Status::ok);
  EXPECT_EQ(c.attach(memory.get(), bytes - 1), Status::invalid);
}

TEST(KvLock, FoundByName) {
  int found = 0;
  EXPECT_TRUE(with_scheme("n-mcs", [&](auto tag) {
    found += std::is_same_v<typename decltype(tag)::template Of<Machine>, NMcs<Machine>>;
  }));
  EXPECT_EQ(found, 1);
  EXPECT_FALSE(with_scheme("3n-mutex", [](auto) {}));
}

}  // namespace
