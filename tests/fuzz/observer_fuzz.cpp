// SPDX-License-Identifier: BSD-3-Clause
// A process writes nonsense into its segment. An observer comes back, and has read nothing outside
// the part that is backed with memory. Behind that part is a page that must not be touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "engine/process.hpp"
#include "observe/observer.hpp"
#include "threads/job.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

TEST(ObserverFuzz, NonsenseIsReadWithoutHarm) {
  Group world(everybody(2)), again(everybody(2));
  std::vector<char> good;
  engine::Settings settings;
  settings.version = "1.0";
  run_job(2, settings, [&](int rank, engine::Process& process) {
    engine::Comm* first = make_comm(process, world, rank);
    engine::Comm* second = make_comm(process, again, rank);
    (void)engine::barrier(*first);
    (void)engine::barrier(*second);
    // Lanes are left out: the observer does not read them, and not all of them are backed.
    const std::uint64_t lanes_end = shm::Segment::kLanesOffset,
                        backed = process.segment.ledger().activity.blocks_end.load_acquire();
    if (rank == 0) {
      good.resize(backed);
      const std::uint64_t blocks =
          first->block_offset < second->block_offset ? first->block_offset : second->block_offset;
      const std::uint64_t begin = blocks - (64 << 10);  // the table lies before the blocks
      std::memcpy(good.data(), process.segment.base(), lanes_end);
      std::memcpy(good.data() + begin, process.segment.base() + begin, backed - begin);
    }
    (void)engine::barrier(*first);
    engine::comm_free(first);
    engine::comm_free(second);
  });
  ASSERT_EQ(good.size() % 4096, 0u);
  auto* memory =
      static_cast<char*>(mmap(nullptr, good.size() + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + good.size(), 4096, PROT_NONE), 0);
  std::mt19937_64 random(4711);
  unsigned attached = 0, memberships = 0, notes = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    if (trial % 10 == 0) std::memcpy(memory, good.data(), good.size());
    for (int hit = 0; hit < 12; ++hit) {
      const bool ledger = random() % 4 == 0;
      const std::uint64_t at = ledger ? shm::Segment::kLedgerOffset + random() % sizeof(shm::Activity)
                                      : good.size() - random() % (64 << 10) - 8;
      const std::uint64_t value =
          random() % 2 ? random() >> (random() % 64) : (good.size() - random() % (64 << 10)) & ~std::uint64_t{127};
      std::memcpy(memory + at, &value, random() % 8 + 1);
    }
    observe::Observer observer;
    if (observer.view(memory, good.size()) != observe::Attached::ok) continue;
    ++attached;
    unsigned seen = 0;
    observer.communicators([&](const observe::Membership&) { ++seen; });
    ASSERT_LE(seen, good.size() / sizeof(shm::ProgressLine));
    memberships += seen;
    shm::NoteCopy note;
    notes += observer.latest(&note);
    (void)observer.call_site(note);
  }
  EXPECT_GT(attached, 100u);
  EXPECT_GT(memberships, 100u);
  EXPECT_GT(notes, 20u);
  munmap(memory, good.size() + 4096);
}

}  // namespace
