// SPDX-License-Identifier: BSD-3-Clause
// Covers of transparent huge pages: these come home as a whole, or are made again.
#include <sys/wait.h>

#include <fstream>

#include "unit/overlap_support.hpp"

using namespace stretto;
using namespace stretto::overlap;
using namespace stretto::test;

namespace {

constexpr std::size_t kPage = 4096, kUnit = 2 << 20;

std::uint64_t number(const char* at) { return reinterpret_cast<std::uintptr_t>(at); }

// AnonHugePages of all mappings that begin in a range.
std::size_t huge_bytes_in(sys::Pages pages) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool here = false;
  std::size_t bytes = 0;
  while (std::getline(maps, line)) {
    unsigned long begin = 0, end = 0, huge = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin < number(pages.at) + pages.bytes && number(pages.at) < end;
    } else if (here && std::sscanf(line.c_str(), "AnonHugePages: %lu", &huge) == 1) {
      bytes += huge << 10;
    }
  }
  return bytes;
}

// Memory of huge pages, between memory without rights. It is no part of a mapping that this forked
// child has from its parent: the kernel does not join parts of such a mapping again.
class HugeMemory {
 public:
  explicit HugeMemory(std::size_t bytes) : all_bytes_(bytes + 2 * kUnit) {
    all_ = static_cast<char*>(mmap(nullptr, all_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    pages_ = {sys::whole_pages(all_ + kPage, bytes + kUnit, kUnit).at, bytes};
    mprotect(pages_.at, bytes, PROT_READ | PROT_WRITE);
    madvise(pages_.at, bytes, MADV_HUGEPAGE);
    std::memset(pages_.at, 7, bytes);
  }
  ~HugeMemory() { munmap(all_, all_bytes_); }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  [[nodiscard]] sys::Pages pages() const { return pages_; }
  [[nodiscard]] char* at() const { return pages_.at; }
  [[nodiscard]] std::size_t huge_bytes() const { return huge_bytes_in(pages_); }

 private:
  std::size_t all_bytes_;
  char* all_ = nullptr;
  sys::Pages pages_;
};

class OverlapHuge : public testing::TestWithParam<GuardSetting> {
 public:
  static void run(std::size_t bytes, const std::function<void(Guard&, Driver&, const HugeMemory&)>& body,
                  std::uint64_t making_share = 0) {
    in_child_or_skip(GetParam().as_nobody, [&]() -> std::string {
      Guard guard;
      if (std::string why = open_guard(&guard, GetParam().mode, false, making_share); !why.empty()) return why;
      if (guard.faults().huge_bytes != kUnit) return "there are no huge pages of 2 MiB";
      const HugeMemory memory(bytes);
      if (memory.huge_bytes() != bytes) return "the system gives no huge pages";
      Driver driver(&guard);
      body(guard, driver, memory);
      driver.stop();
      guard.close();
      return "";
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, OverlapHuge, testing::ValuesIn(kGuardSettings),
                         [](const auto& named) { return std::string(named.param.name); });

int cover_of(Guard& guard, sys::Pages pages) {
  int cover = -1;
  EXPECT_EQ(guard.cover(pages, &cover), Refusal::none);
  return cover;
}

// Publishes all of it in pieces, as data come.
void publish_in_pieces(Driver& driver, int cover, std::size_t bytes, std::size_t piece) {
  for (std::size_t at = 0; at < bytes; at += piece) EXPECT_EQ(driver.publish(cover, at, piece), 0);
}

TEST_P(OverlapHuge, PagesThatComeInPiecesComeHomeAsAWhole) {
  run(4 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    for (int round = 1; round < 4; ++round) {
      const int cover = cover_of(guard, memory.pages());
      EXPECT_EQ(number(guard.landing(cover)) % kUnit, 0u);
      std::memset(guard.landing(cover), round, 4 * kUnit);
      EXPECT_EQ(driver.publish(cover, 0, kUnit - kPage), 0);
      EXPECT_TRUE(guard.away(number(memory.at()), 1)) << "its last page is still to come";
      publish_in_pieces(driver, cover, 4 * kUnit, 64 << 10);
      EXPECT_FALSE(guard.any_away());
      EXPECT_EQ(driver.release(cover), 0);
      EXPECT_TRUE(all_are(memory.at(), 4 * kUnit, static_cast<char>(round)));
      EXPECT_EQ(memory.huge_bytes(), 4 * kUnit);
    }
  });
}

// A thread that waits for a page gets it before the rest of its huge page has come.
TEST_P(OverlapHuge, WhoWaitsGetsAPageOfItsOwn) {
  run(2 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    const int cover = cover_of(guard, memory.pages());
    std::memset(guard.landing(cover), 3, 2 * kUnit);
    EXPECT_EQ(driver.publish(cover, 0, 64 * kPage), 0);
    std::thread complete([&] { EXPECT_EQ(*static_cast<volatile char*>(memory.at() + 5 * kPage), 3); });
    complete.join();
    EXPECT_EQ(driver.run([] { return 0; }), 0);  // the kernel wakes the thread before the driver counts
    EXPECT_EQ(guard.away_bytes(cover), 2 * kUnit - 64 * kPage);
    std::thread to_come([&] { EXPECT_EQ(*static_cast<volatile char*>(memory.at() + kUnit + kPage), 3); });
    EXPECT_TRUE(driver.told(Told::Kind::fault, 2));
    sys::nap_ns(5 * Guard::kPatienceNs);
    EXPECT_EQ(driver.publish(cover, kUnit, 4 * kPage), 0);
    to_come.join();
    EXPECT_EQ(driver.publish(cover, 0, 2 * kUnit), 0);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(memory.at(), 2 * kUnit, 3));
    EXPECT_EQ(memory.huge_bytes(), 2 * kUnit) << "what was split is whole again";
  });
}

// With no time at all for it, one huge page is made in each call: nobody knows how long it takes.
TEST_P(OverlapHuge, WhatThereIsNoTimeForIsMadeInLaterCalls) {
  run(
      3 * kUnit,
      [](Guard& guard, Driver& driver, const HugeMemory& memory) {
        for (std::size_t made = 1; made <= 3; ++made) {
          sys::Pages ranges[3];  // at first a page of each huge page is left out, which splits it
          for (std::size_t i = 0; i < 3; ++i) ranges[i] = {memory.at() + i * kUnit, made == 1 ? kUnit - kPage : kUnit};
          int cover = -1;
          ASSERT_EQ(guard.cover(ranges, 3, &cover), Refusal::none);
          publish_in_pieces(driver, cover, 3 * kUnit, kUnit / 2);
          EXPECT_EQ(driver.release(cover), 0);
          EXPECT_EQ(memory.huge_bytes(), made * kUnit);
        }
        EXPECT_TRUE(all_are(memory.at(), 3 * kUnit, 7));
      },
      std::uint64_t{1} << 30);
}

TEST_P(OverlapHuge, EndsInsideOfHugePagesAreMadeAgain) {
  run(4 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    for (int round = 1; round < 3; ++round) {
      const sys::Pages part{memory.at() + 3 * kPage, 4 * kUnit - 5 * kPage};
      const int cover = cover_of(guard, part);
      std::memset(guard.landing(cover), round, part.bytes);
      publish_in_pieces(driver, cover, part.bytes, 64 << 10);
      EXPECT_EQ(driver.release(cover), 0);
      EXPECT_TRUE(all_are(part.at, part.bytes, static_cast<char>(round)));
      EXPECT_TRUE(all_are(memory.at(), 3 * kPage, 7) && all_are(part.at + part.bytes, 2 * kPage, 7));
      EXPECT_EQ(memory.huge_bytes(), 4 * kUnit) << "round " << round;
    }
  });
}

// Spare memory that had small pages takes huge ones.
TEST_P(OverlapHuge, SpareMemoryOfSmallPagesServesHugeOnes) {
  run(2 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    const Mapped small(2 * kUnit, 5);
    madvise(small.at(), 2 * kUnit, MADV_NOHUGEPAGE);
    for (int i = 0; i < 2; ++i) {
      const int first = cover_of(guard, small.pages());
      EXPECT_EQ(driver.release(first), 0);
      const int second = cover_of(guard, memory.pages());
      publish_in_pieces(driver, second, 2 * kUnit, 128 << 10);
      EXPECT_EQ(driver.release(second), 0);
      EXPECT_EQ(memory.huge_bytes(), 2 * kUnit);
      EXPECT_TRUE(all_are(small.at(), 2 * kUnit, 5) && all_are(memory.at(), 2 * kUnit, 7));
    }
  });
}

// What the program drops, unmaps or moves of a huge page does not keep the rest from coming home.
TEST_P(OverlapHuge, ChangesOfTheProgramOpenHugePages) {
  run(6 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    const int cover = cover_of(guard, memory.pages());
    std::memset(guard.landing(cover), 3, 6 * kUnit);
    char* const second = memory.at() + kUnit;
    EXPECT_EQ(driver.publish(cover, 0, kUnit / 2), 0);
    madvise(memory.at() + kUnit / 2, 8 * kPage, MADV_DONTNEED);
    EXPECT_TRUE(all_are(memory.at(), kUnit / 2, 3)) << "its data are here";
    munmap(second, kUnit / 2);
    EXPECT_EQ(driver.publish(cover, kUnit, kUnit), 0);
    EXPECT_TRUE(all_are(second + kUnit / 2, kUnit / 2, 3));
    const Mapped place(2 * kUnit);
    char* const moved = static_cast<char*>(
        mremap(memory.at() + 4 * kUnit, 2 * kUnit, 2 * kUnit, MREMAP_MAYMOVE | MREMAP_FIXED, place.at()));
    EXPECT_EQ(driver.publish(cover, 4 * kUnit, kUnit), 0);
    EXPECT_TRUE(all_are(moved, kUnit, 3));
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_FALSE(guard.any_away());
    EXPECT_TRUE(all_are(memory.at() + kUnit / 2, 8 * kPage, 0));
    EXPECT_TRUE(all_are(memory.at() + kUnit / 2 + 8 * kPage, kUnit / 2 - 8 * kPage, 3));
    EXPECT_TRUE(all_are(memory.at() + 2 * kUnit, 2 * kUnit, 3) && all_are(moved, 2 * kUnit, 3));
    ASSERT_NE(mmap(second, kUnit / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
  });
}

// After a fork the kernel splits what it moves.
TEST_P(OverlapHuge, ABufferThatAChildShares) {
  run(2 * kUnit, [](Guard& guard, Driver& driver, const HugeMemory& memory) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      char byte = 0;
      _exit(read(ends[0], &byte, 1) == 1 && all_are(memory.at(), 2 * kUnit, 7) ? 0 : 1);
    }
    const int cover = cover_of(guard, memory.pages());
    std::memset(guard.landing(cover), 3, 2 * kUnit);
    publish_in_pieces(driver, cover, 2 * kUnit, 64 << 10);
    EXPECT_EQ(driver.release(cover), 0);
    EXPECT_TRUE(all_are(memory.at(), 2 * kUnit, 3));
    EXPECT_EQ(write(ends[1], "", 1), 1);
    int status = 1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  });
}

}  // namespace
