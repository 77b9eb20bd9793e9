// SPDX-License-Identifier: BSD-3-Clause
// Covers with kernel faults, in user mode, and in user mode without privilege.
#include <fcntl.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>

#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;

namespace {

constexpr std::size_t kPage = 4096, kPages = 64, kBytes = kPages * kPage;

class OverlapGuard : public testing::TestWithParam<GuardSetting> {
 public:
  static void run(const std::function<void(Guard&, Driver&)>& body) {
    in_child_or_skip(GetParam().as_nobody, [&]() -> std::string {
      Guard guard;
      if (std::string why = open_guard(&guard, GetParam().mode); !why.empty()) return why;
      if (guard.faults().page_bytes != kPage) return "pages have another size";
      Driver driver(&guard);
      body(guard, driver);
      driver.stop();
      guard.close();
      return "";
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, OverlapGuard, testing::ValuesIn(kGuardSettings),
                         [](const auto& named) { return std::string(named.param.name); });

// Page i of the landing gets the value i + 1.
void receive(Guard& guard, int cover, std::size_t pages = kPages) {
  for (std::size_t i = 0; i < pages; ++i)
    std::memset(guard.landing(cover) + i * kPage, static_cast<int>(i % 100 + 1), kPage);
}

bool has_received(const char* at, std::size_t pages = kPages, std::size_t first = 0) {
  for (std::size_t i = 0; i < pages; ++i)
    if (!all_are(at + i * kPage, kPage, static_cast<char>((first + i) % 100 + 1))) return false;
  return true;
}

int cover_of(Guard& guard, sys::Pages pages) {
  int cover = -1;
  EXPECT_EQ(guard.cover(pages, &cover), Refusal::none);
  return cover;
}

std::uint64_t number(const char* at) { return reinterpret_cast<std::uintptr_t>(at); }

TEST_P(OverlapGuard, AThreadThatTouchesInReverseOrderGetsAllData) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    EXPECT_TRUE(guard.away(number(buffer.at()) + kBytes - 1, 1) && guard.any_away());
    EXPECT_FALSE(guard.away(number(buffer.at()) + kBytes, 100));
    EXPECT_TRUE(all_are(guard.landing(cover), kBytes, 7));
    std::atomic<std::uint32_t> thread{0};
    std::thread toucher([&] {
      thread = static_cast<std::uint32_t>(gettid());
      for (std::size_t i = kPages; i-- > 0;)
        EXPECT_EQ(*static_cast<volatile char*>(buffer.at() + i * kPage), static_cast<char>(i % 100 + 1));
    });
    ASSERT_TRUE(driver.told(Told::Kind::fault));
    const Told told = driver.last(Told::Kind::fault);
    EXPECT_EQ(told.cover, cover);
    EXPECT_EQ(told.offset, kBytes - kPage);
    EXPECT_EQ(told.thread, thread.load());
    receive(guard, cover);
    for (std::size_t i = 0; i < kPages; i += 4) EXPECT_EQ(driver.publish(cover, i * kPage, 4 * kPage), 0);
    toucher.join();
    EXPECT_EQ(guard.away_bytes(cover), 0u);
    EXPECT_FALSE(guard.any_away());
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(buffer.at()));
  });
}

TEST_P(OverlapGuard, SeveralThreadsWaitForOnePage) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        if (i == 0) *static_cast<volatile char*>(buffer.at() + 3 * kPage + 100) = 99;
        right += *static_cast<volatile char*>(buffer.at() + 3 * kPage) == 4 ? 1 : 0;
      });
    ASSERT_TRUE(driver.told(Told::Kind::fault));
    receive(guard, cover);
    EXPECT_EQ(driver.publish(cover, 3 * kPage, kPage), 0);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 6);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_EQ(buffer.at()[3 * kPage + 100], 99);
  });
}

// Threads touch pages while they come home, many times.
TEST_P(OverlapGuard, FaultsMeetPagesThatAreJustPublished) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    for (int round = 0; round < 20; ++round) {
      const int cover = cover_of(guard, buffer.pages());
      receive(guard, cover);
      std::thread toucher([&] { EXPECT_TRUE(has_received(buffer.at())); });
      for (std::size_t i = 0; i < kPages; i += 8) EXPECT_EQ(driver.publish(cover, i * kPage, 8 * kPage), 0);
      toucher.join();
      EXPECT_EQ(driver.release(cover), 0);
      EXPECT_TRUE(has_received(buffer.at()));
    }
    EXPECT_EQ(driver.count(Told::Kind::clash), 0);
  });
}

// What comes in a turn of the driver goes home by one call of the kernel, if it is one run.
TEST_P(OverlapGuard, PartsOfATurnGoHomeTogether) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    receive(guard, cover);
    std::uint64_t before = 0;
    EXPECT_EQ(driver.run([&] {
      before = guard.moves();
      for (const std::size_t part : {3, 1, 0, 2, 7}) guard.publish_soon(cover, part * 4 * kPage, 4 * kPage);
      EXPECT_FALSE(guard.is_home(cover, 0));
      return 0;
    }),
              0);
    EXPECT_TRUE(has_received(buffer.at(), 16));
    EXPECT_TRUE(has_received(buffer.at() + 28 * kPage, 4, 28));
    EXPECT_EQ(driver.run([&] { return static_cast<int>(guard.moves() - before); }), 2);
    EXPECT_EQ(guard.away_bytes(cover), kBytes - 20 * kPage);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(buffer.at()));
  });
}

// Threads touch pages that are to go home with the next turn, or go home at once, many times.
TEST_P(OverlapGuard, FaultsMeetPagesThatAreToGoHomeSoon) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    for (int round = 0; round < 20; ++round) {
      const int cover = cover_of(guard, buffer.pages());
      receive(guard, cover);
      std::vector<std::thread> touchers;
      for (const std::size_t first : {0, 32})
        touchers.emplace_back([&, first] { EXPECT_TRUE(has_received(buffer.at() + first * kPage, 32, first)); });
      for (std::size_t i = 0; i < kPages; i += 4) {
        const std::size_t at = (i * 5 + 4 * static_cast<std::size_t>(round)) % kPages * kPage;
        EXPECT_EQ(driver.run([&] {
          if (i % 16 == 0) return guard.publish(cover, at, 4 * kPage);
          guard.publish_soon(cover, at, 4 * kPage);
          return 0;
        }),
                  0);
      }
      for (std::thread& each : touchers) each.join();
      EXPECT_EQ(driver.release(cover), 0);
      EXPECT_TRUE(has_received(buffer.at()));
    }
    EXPECT_EQ(driver.count(Told::Kind::clash), 0);
  });
}

// A cover that ends takes what was to go home with it: the next one in its place has none of it.
TEST_P(OverlapGuard, ACoverThatEndsLeavesNothingToGoHome) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    for (int round = 0; round < 3; ++round) {
      const int cover = cover_of(guard, buffer.pages());
      receive(guard, cover);
      EXPECT_EQ(driver.run([&] {
        guard.publish_soon(cover, 0, 8 * kPage);
        return guard.release(cover);
      }),
                0);
      EXPECT_TRUE(has_received(buffer.at()));
      const int next = cover_of(guard, buffer.pages());
      driver.run([] { return 0; });
      EXPECT_EQ(guard.away_bytes(next), kBytes);
      EXPECT_EQ(driver.release(next), 0);
    }
  });
}

TEST_P(OverlapGuard, ReleaseBringsHomeWhatIsThere) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    receive(guard, cover, 10);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(buffer.at(), 10));
    EXPECT_TRUE(all_are(buffer.at() + 10 * kPage, kBytes - 10 * kPage, 7));
  });
}

TEST_P(OverlapGuard, SpareMemoryIsUsedAgain) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7), other(kBytes, 5);
    const char* landing = nullptr;
    for (int i = 0; i < 40; ++i) {
      const int cover = cover_of(guard, buffer.pages());
      if (i == 0) landing = guard.landing(cover);
      EXPECT_EQ(guard.landing(cover), landing);
      if (i % 4 == 0) {
        const int second = cover_of(guard, other.pages());
        EXPECT_NE(guard.landing(second), landing);
        EXPECT_EQ(driver.release(second), 0);
      }
      EXPECT_EQ(driver.release(cover), 0);
    }
    EXPECT_TRUE(all_are(buffer.at(), kBytes, 7) && all_are(other.at(), kBytes, 5));
  });
}

TEST_P(OverlapGuard, RefusalsSayWhyAndLeaveTheBufferAlone) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const sys::Pages pages = buffer.pages();
    int none = -1, fd = -1;
    EXPECT_EQ(Guard().cover(pages, &none), Refusal::closed);
    EXPECT_EQ(guard.cover({pages.at, 0}, &none), Refusal::too_small);
    EXPECT_EQ(guard.cover({pages.at + 16, kPage}, &none), Refusal::too_small);
    const int cover = cover_of(guard, {pages.at, kBytes / 2});
    EXPECT_EQ(guard.cover({pages.at + kBytes / 2 - kPage, kPage}, &none), Refusal::covered);
    EXPECT_EQ(guard.cover(pages, &none), Refusal::covered);
    const int beside = cover_of(guard, {pages.at + kBytes / 2, kBytes / 2});
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_EQ(driver.release(beside), 0);

    mprotect(pages.at, kPage, PROT_READ);
    EXPECT_EQ(guard.cover(pages, &none), Refusal::not_anonymous);
    mprotect(pages.at, kPage, PROT_READ | PROT_WRITE);
    ASSERT_EQ(sys::memfd_open("stretto-test", kBytes, &fd), 0);
    void* const shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    std::memset(shared, 3, kBytes);
    EXPECT_EQ(guard.cover({static_cast<char*>(shared), kBytes}, &none), Refusal::not_anonymous);
    EXPECT_TRUE(all_are(static_cast<char*>(shared), kBytes, 3));
    munmap(shared, kBytes);
    sys::close_descriptor(fd);

    Guard other;
    ASSERT_EQ(open_guard(&other, GetParam().mode), "");
    const int theirs = cover_of(other, pages);
    EXPECT_EQ(guard.cover(pages, &none), Refusal::foreign);
    EXPECT_EQ(other.release(theirs), 0);

    const Mapped large(300 << 20);
    EXPECT_EQ(guard.cover(large.pages(), &none), Refusal::no_memory);
    std::vector<int> covers;
    for (std::size_t i = 0; i < Guard::kMostCovers; ++i)
      covers.push_back(cover_of(guard, {pages.at + i * kPage, kPage}));
    EXPECT_EQ(guard.cover({pages.at + kBytes - kPage, kPage}, &none), Refusal::too_many);
    for (const int each : covers) EXPECT_EQ(driver.release(each), 0);
    EXPECT_TRUE(all_are(pages.at, kBytes, 7));
    EXPECT_EQ(none, -1);
    for (int i = 0; i <= static_cast<int>(Refusal::lost); ++i)
      EXPECT_GT(std::strlen(text_of(static_cast<Refusal>(i))), 5u);
  });
}

// ---- what programs do meanwhile ----

TEST_P(OverlapGuard, WhatIsUnmappedIsForgotten) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    char* const hole = buffer.at() + 8 * kPage;
    munmap(hole, 16 * kPage);
    EXPECT_EQ(mmap(hole, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), hole);
    ASSERT_TRUE(driver.told(Told::Kind::dropped));
    EXPECT_EQ(driver.last(Told::Kind::dropped).offset, 8 * kPage);
    EXPECT_EQ(driver.last(Told::Kind::dropped).bytes, 16 * kPage);
    EXPECT_EQ(guard.away_bytes(cover), kBytes - 16 * kPage);
    std::memset(hole, 42, 16 * kPage);
    const int newer = cover_of(guard, {hole, 16 * kPage});  // what is there now has nothing to do with the first
    receive(guard, cover);
    EXPECT_EQ(driver.publish(cover, 0, kBytes), 0);
    EXPECT_EQ(guard.away_bytes(newer), 16 * kPage);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(guard.away(number(hole), 1));
    EXPECT_EQ(driver.release(newer), 0);
    EXPECT_TRUE(all_are(hole, 16 * kPage, 42));
    EXPECT_TRUE(has_received(buffer.at(), 8));
    EXPECT_TRUE(has_received(buffer.at() + 24 * kPage, kPages - 24, 24));
    const int again = cover_of(guard, buffer.pages());
    EXPECT_EQ(driver.release(again), 0);
  });
}

TEST_P(OverlapGuard, AHeapBufferIsFreedAndAllocatedAgain) {
  run([](Guard& guard, Driver& driver) {
    for (int round = 0; round < 10; ++round) {
      const std::size_t bytes = round % 2 == 0 ? 100'000 : 1 << 20;
      char* const heap = static_cast<char*>(std::malloc(bytes));
      std::memset(heap, 7, bytes);
      const sys::Pages pages = sys::whole_pages(heap, bytes, kPage);
      const int cover = cover_of(guard, pages);
      receive(guard, cover, pages.bytes / kPage);
      std::free(heap);
      char* const next = static_cast<char*>(std::malloc(bytes));
      std::thread user([&] { std::memset(next, 9, bytes); });
      EXPECT_EQ(driver.release(cover), 0);
      user.join();
      EXPECT_TRUE(all_are(next, bytes, 9));
      std::free(next);
    }
  });
}

TEST_P(OverlapGuard, WhatIsMovedIsGuardedThere) {
  run([](Guard& guard, Driver& driver) {
    Mapped buffer(kBytes, 7), place(kBytes);
    const int cover = cover_of(guard, buffer.pages());
    // From the middle, so that three parts arise.
    EXPECT_EQ(mremap(buffer.at() + 8 * kPage, 16 * kPage, 16 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place.at()),
              place.at());
    EXPECT_TRUE(guard.away(number(place.at()), 1));
    EXPECT_FALSE(guard.away(number(buffer.at()) + 8 * kPage, 16 * kPage));
    EXPECT_EQ(guard.away_bytes(cover), kBytes);
    std::thread toucher([&] { EXPECT_EQ(*static_cast<volatile char*>(place.at() + kPage), 10); });
    ASSERT_TRUE(driver.told(Told::Kind::fault));
    EXPECT_EQ(driver.last(Told::Kind::fault).offset, 9 * kPage);
    receive(guard, cover);
    EXPECT_EQ(driver.publish(cover, 0, kBytes), 0);
    toucher.join();
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(buffer.at(), 8));
    EXPECT_TRUE(has_received(place.at(), 16, 8));
    EXPECT_TRUE(has_received(buffer.at() + 24 * kPage, kPages - 24, 24));
    EXPECT_EQ(driver.count(Told::Kind::lost) + driver.count(Told::Kind::clash), 0);
  });
}

// The new pages are registered as well, and belong to no cover.
TEST_P(OverlapGuard, ABufferThatGrowsHasZerosBehindItsData) {
  run([](Guard& guard, Driver& driver) {
    void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int cover = cover_of(guard, {static_cast<char*>(mapped), kBytes});
    char* const grown = static_cast<char*>(mremap(mapped, kBytes, 4 * kBytes, MREMAP_MAYMOVE));
    EXPECT_TRUE(all_are(grown + kBytes, 3 * kBytes, 0));
    receive(guard, cover);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(grown));
    munmap(grown, 4 * kBytes);
  });
}

TEST_P(OverlapGuard, WhatIsDroppedReadsAsZeros) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    receive(guard, cover);
    EXPECT_EQ(driver.publish(cover, 0, 4 * kPage), 0);
    madvise(buffer.at(), 8 * kPage, MADV_DONTNEED);  // half is home, half is away
    EXPECT_FALSE(guard.away(number(buffer.at()), 8 * kPage));
    EXPECT_EQ(guard.away_bytes(cover), kBytes - 8 * kPage);
    EXPECT_TRUE(all_are(buffer.at(), 8 * kPage, 0));
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(buffer.at(), 8 * kPage, 0));
    EXPECT_TRUE(has_received(buffer.at() + 8 * kPage, kPages - 8, 8));
  });
}

TEST_P(OverlapGuard, LockedAndReadOnlyPagesGetTheirData) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    mprotect(buffer.at() + 4 * kPage, 4 * kPage, PROT_READ);
    receive(guard, cover);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(has_received(buffer.at()));
    mprotect(buffer.at() + 4 * kPage, 4 * kPage, PROT_READ | PROT_WRITE);
    const int again = cover_of(guard, buffer.pages());
    EXPECT_EQ(driver.release(again), 0);
  });
}

// More pieces than a cover follows. It says so, and no thread hangs.
// What lies between ranges is never away, nor written.
TEST_P(OverlapGuard, RangesOfABufferAreGuardedAndTheRestIsNot) {
  run([](Guard& guard, Driver& driver) {
    const Mapped buffer(kBytes, 7);
    constexpr std::size_t kStep = 4;
    sys::Pages ranges[Guard::kMostRanges + 1] = {};
    for (std::size_t i = 0; i < kPages / kStep; ++i) ranges[i] = {buffer.at() + (i * kStep + 1) * kPage, 2 * kPage};
    int cover = -1;
    ASSERT_EQ(guard.cover(ranges, kPages / kStep, &cover), Refusal::none);
    EXPECT_EQ(guard.away_bytes(cover), kBytes / 2);
    for (std::size_t i = 0; i < kPages; ++i) {
      const bool away = i % kStep == 1 || i % kStep == 2;
      EXPECT_EQ(guard.away(reinterpret_cast<std::uintptr_t>(buffer.at()) + i * kPage, 1), away) << i;
      if (!away) std::memset(buffer.at() + i * kPage, 8, kPage);
    }
    std::memset(guard.landing(cover), 9, (kPages - 2) * kPage);
    EXPECT_EQ(driver.publish(cover, 0, kBytes / 2), 0);
    EXPECT_EQ(driver.release(cover), 0);
    for (std::size_t i = 0; i < kPages; ++i)
      EXPECT_TRUE(all_are(buffer.at() + i * kPage, kPage, i % kStep == 1 || i % kStep == 2 ? 9 : 8)) << i;
    EXPECT_EQ(guard.cover(ranges, Guard::kMostRanges + 1, &cover), Refusal::gaps);
  });
}

TEST_P(OverlapGuard, TooManyPiecesAreTold) {
  run([](Guard& guard, Driver& driver) {
    constexpr std::size_t kMany = 4 * kPages;
    const Mapped buffer(kMany * kPage, 7), place(kMany * kPage);
    const int cover = cover_of(guard, buffer.pages());
    for (std::size_t i = 1; i < kMany; i += 2)
      EXPECT_NE(mremap(buffer.at() + i * kPage, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place.at() + i * kPage),
                MAP_FAILED);
    ASSERT_TRUE(driver.told(Told::Kind::lost));
    std::memset(guard.landing(cover), 9, kMany * kPage);
    EXPECT_EQ(driver.release(cover), 0);
    for (std::size_t i = 0; i < kMany; ++i) {
      const char* const at = (i % 2 != 0 ? place : buffer).at() + i * kPage;
      EXPECT_TRUE(all_are(at, kPage, 0) || all_are(at, kPage, 9)) << i;
    }
  });
}

// Another thread maps, unmaps and moves parts all the time.
TEST_P(OverlapGuard, EventsAndPublishingMix) {
  run([](Guard& guard, Driver& driver) {
    for (int round = 0; round < 20; ++round) {
      const Mapped buffer(kBytes, 7), other(kBytes, 3);
      const int cover = cover_of(guard, buffer.pages()), second = cover_of(guard, other.pages());
      receive(guard, cover);
      std::thread program([&] {
        for (std::size_t i = 0; i < kPages; i += 2) munmap(other.at() + i * kPage, kPage);
      });
      for (std::size_t i = 0; i < kPages; i += 4) EXPECT_EQ(driver.publish(cover, i * kPage, 4 * kPage), 0);
      program.join();
      EXPECT_TRUE(has_received(buffer.at()));
      EXPECT_EQ(driver.release(cover), 0);
      EXPECT_EQ(driver.release(second), 0);
      for (std::size_t i = 1; i < kPages; i += 2) EXPECT_TRUE(all_are(other.at() + i * kPage, kPage, 3));
    }
  });
}

// Threads ask all the time, while covers of many sizes begin and end.
TEST_P(OverlapGuard, AnswersAreRightWhileCoversComeAndGo) {
  run([](Guard& guard, Driver& driver) {
    const Mapped steady(4 * kPage, 7), buffer(40 * kBytes, 5);
    const int cover = cover_of(guard, steady.pages());
    std::atomic<bool> stopped{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        while (!stopped) {
          wrong += guard.away(number(steady.at()) + kPage, 1) ? 0 : 1;
          (void)guard.away(number(buffer.at()), 40 * kBytes);
        }
      });
    for (std::size_t round = 0; round < 60; ++round) {
      const std::size_t pages = 1 + round * 397 % (40 * kPages);
      const int each = cover_of(guard, {buffer.at(), pages * kPage});
      EXPECT_TRUE(guard.away(number(buffer.at()), 1));
      EXPECT_EQ(driver.release(each), 0);
      EXPECT_FALSE(guard.away(number(buffer.at()), 40 * kBytes));
    }
    stopped = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(buffer.at(), 40 * kBytes, 5));
  });
}

TEST(OverlapGuardFork, AChildGetsTheDataAsThePagesGoHome) {
  in_child_or_skip(false, []() -> std::string {
    Guard guard;
    if (std::string why = open_guard(&guard, sys::FaultMode::kernel, true); !why.empty()) return why;
    if (!guard.faults().says_fork) return "fork events need CAP_SYS_PTRACE";
    Driver driver(&guard);
    const Mapped buffer(kBytes, 7);
    const int cover = cover_of(guard, buffer.pages());
    receive(guard, cover);
    EXPECT_EQ(driver.publish(cover, 0, 4 * kPage), 0);
    const pid_t child = fork();
    if (child == 0) _exit(has_received(buffer.at()) ? 0 : 1);
    EXPECT_TRUE(driver.told(Told::Kind::fork));
    EXPECT_EQ(driver.release(cover), 0);
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(driver.told(Told::Kind::fork_end));
    EXPECT_TRUE(has_received(buffer.at()));
    const pid_t later = fork();  // nothing is away: nothing to hand over
    if (later == 0) _exit(has_received(buffer.at()) ? 0 : 1);
    EXPECT_EQ(waitpid(later, &status, 0), later);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(driver.count(Told::Kind::fork), 1);
    driver.stop();
    return "";
  });
}

}  // namespace
