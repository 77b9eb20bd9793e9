// SPDX-License-Identifier: BSD-3-Clause
// A job of threads, and an observer that the job does not know of. Whenever it reads, it reads what
// was written.
#include "observe/observer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "engine/process.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

using observe::Attached;
using observe::Observer;

engine::Settings settings_of(std::uint64_t rank) {
  engine::Settings settings;
  settings.job = 4711;
  settings.job_rank = rank;
  settings.job_ranks = 3;
  settings.version = "1.2.3";
  return settings;
}

// Goes through the owner's own mapping, because ThreadSanitizer takes an address for an identity.
void look(Observer& observer, const engine::Process& process) {
  ASSERT_EQ(observer.view(process.segment.base(), process.segment.bytes()), Attached::ok);
}

std::vector<observe::Membership> communicators_of(const Observer& observer) {
  std::vector<observe::Membership> all;
  observer.communicators([&](const observe::Membership& m) { all.push_back(m); });
  return all;
}

// Joins the ranks before what they refer to goes, however the test ends.
template <class Release>
class Joined {
 public:
  Joined(std::vector<std::jthread>& ranks, Release release) : ranks_(ranks), release_(release) {}
  ~Joined() {
    release_();
    ranks_.clear();
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

 private:
  std::vector<std::jthread>& ranks_;
  Release release_;
};

constexpr auto kPatience = std::chrono::seconds(20);

template <class Condition>
bool becomes(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Three ranks with an engine each, in threads of their own.
class Onlooking : public testing::Test {
 protected:
  Onlooking() {
    for (std::uint64_t r = 0; r < 3; ++r) processes_.push_back(engine::process_create(settings_of(r), {}));
  }
  ~Onlooking() override {
    ranks_.clear();
    for (auto* process : processes_) engine::process_destroy(process);
  }
  void start(RankMain main) {
    for (int r = 0; r < 3; ++r) ranks_.emplace_back([this, main, r] { main(r, *processes_[r]); });
  }
  std::vector<engine::Process*> processes_;
  std::vector<std::jthread> ranks_;
};

TEST_F(Onlooking, TellsWhoWaitsAndWhoIsMissing) {
  Group group(everybody(3));
  std::atomic<int> at_work = 0;
  std::atomic<bool> come = false;
  start([&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    (void)engine::barrier(*comm);
    ++at_work;
    while (rank == 2 && !come) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (void)engine::barrier(*comm);
    ++at_work;
    while (at_work > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    engine::comm_free(comm);
  });
  const Joined joined(ranks_, [&] { come = true, at_work = -1; });
  ASSERT_TRUE(becomes([&] { return at_work == 3; }));
  Observer observers[3];
  for (int r = 0; r < 3; ++r) {
    look(observers[r], *processes_[r]);
    EXPECT_EQ(observers[r].process_info().job, 4711u);
    EXPECT_EQ(observers[r].process_info().rank, static_cast<std::uint64_t>(r));
    EXPECT_STREQ(observers[r].process_info().version, "1.2.3");
  }
  EXPECT_TRUE(becomes([&] { return observers[0].waiting_since_ns() != 0 && observers[1].waiting_since_ns() != 0; }));
  EXPECT_EQ(observers[2].waiting_since_ns(), 0u);
  const std::uint64_t begun[] = {2, 2, 1}, ended[] = {1, 1, 1};
  for (int r = 0; r < 3; ++r) {
    shm::NoteCopy note;
    ASSERT_TRUE(observers[r].latest(&note));
    EXPECT_EQ(note.open(), r != 2);
    const auto all = communicators_of(observers[r]);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].members, 3u);
    EXPECT_EQ(all[0].rank, static_cast<std::uint32_t>(r));
    EXPECT_EQ(all[0].generation, note.generation);
    EXPECT_EQ(all[0].begun, begun[r]);
    EXPECT_EQ(all[0].ended, ended[r]);
  }
  come = true;
  EXPECT_TRUE(becomes([&] { return at_work == 6; }));
  for (const Observer& observer : observers) EXPECT_EQ(observer.waiting_since_ns(), 0u);
  at_work = -1;
  EXPECT_TRUE(becomes([&] { return communicators_of(observers[0]).empty(); })) << "freed communicators are in no list";
}

// Calls and communicators come and go while the observer looks at them.
TEST_F(Onlooking, ReadsWhatIsBeingWritten) {
  Group world(everybody(3)), pair(std::vector{0, 1});
  std::atomic<bool> stop = false;
  start([&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, world, rank);
    ASSERT_NE(comm, nullptr);
    for (std::int64_t go_on = 1; go_on != 0;) {
      for (int i = 0; i < 200; ++i) {
        char bytes[24] = {};
        (void)engine::bcast(*comm, {bytes, 24, &kBytes}, 2, true);
        (void)engine::barrier(*comm);
      }
      if (rank < 2) {
        engine::Comm* two = make_comm(process, pair, rank);
        ASSERT_NE(two, nullptr);
        for (int i = 0; i < 20; ++i) (void)engine::barrier(*two);
        engine::comm_free(two);
      }
      go_on = !stop;
      (void)engine::bcast(*comm, {reinterpret_cast<char*>(&go_on), 8, &kBytes}, 0, true);
    }
    engine::comm_free(comm);
  });
  const Joined joined(ranks_, [&] { stop = true; });
  Observer observer;
  ASSERT_TRUE(becomes([&] {
    const Locked locked(processes_[0]->lock);
    return processes_[0]->active != nullptr;
  }));
  look(observer, *processes_[0]);
  int notes = 0, barriers = 0, pairs = 0;
  std::uint64_t last = 0;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (int i = 0; (pairs < 50 * kEffort || notes < 5000 * kEffort) && std::chrono::steady_clock::now() < end; ++i) {
    shm::NoteCopy note;
    if (observer.latest(&note)) {
      ++notes;
      EXPECT_GE(note.number, last) << "time goes on";
      last = note.number;
      const auto collective = static_cast<Collective>(note.call & 0xff);
      const bool barrier = collective == Collective::barrier;
      barriers += barrier;
      ASSERT_TRUE(barrier || collective == Collective::bcast);
      if (barrier)
        EXPECT_EQ(note.descriptor.root, -1);
      else
        EXPECT_TRUE((note.descriptor.root == 2 && note.descriptor.bytes == 24) ||
                    (note.descriptor.root == 0 && note.descriptor.bytes == 8));
    }
    const auto all = communicators_of(observer);
    ASSERT_LE(all.size(), 2u);
    for (const auto& m : all) {
      EXPECT_TRUE(m.rank == 0 && (m.members == 3 || m.members == 2)) << m.rank << " of " << m.members;
      pairs += m.members == 2;
    }
    if (i % 64 == 0) std::this_thread::yield();
  }
  EXPECT_GT(notes, 100);
  EXPECT_GT(barriers, 0);
  EXPECT_GT(pairs, 0);
}

TEST(Observer, ThreadsThatCountTogetherLoseNothing) {
  static shm::Tally tally;
  tally = {};
  constexpr std::uint64_t kEach = 20'000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (std::uint64_t i = 0; i < kEach; ++i) tally.count(Path::cico, 3, 2, true);
      });
    }
  }
  EXPECT_EQ(tally.calls[static_cast<int>(Path::cico)].load_relaxed(), 4 * kEach);
  EXPECT_EQ(tally.calls[static_cast<int>(Path::inlined)].load_relaxed(), 0u);
  EXPECT_EQ(tally.bytes.load_relaxed(), 12 * kEach);
  EXPECT_EQ(tally.ns.load_relaxed(), 8 * kEach);
}

TEST(Observer, KnowsWhatIsNotForIt) {
  shm::Segment segment;
  ASSERT_EQ(segment.create(1 << 20, 4096), Status::ok);
  Observer observer;
  EXPECT_EQ(observer.view(segment.base(), segment.bytes()), Attached::other_file) << "it does not say whose it is";
  observe::process_info_put(segment, {.rank = 1, .ranks = 4});
  EXPECT_EQ(observer.view(segment.base(), segment.bytes()), Attached::ok);
  EXPECT_EQ(observer.process_info().rank, 1u);
  EXPECT_TRUE(communicators_of(observer).empty());
  shm::NoteCopy note;
  EXPECT_FALSE(observer.latest(&note));
  EXPECT_FALSE(observer.left());
  segment.retire();
  EXPECT_TRUE(observer.left());
  auto* const header = reinterpret_cast<shm::SegmentHeader*>(segment.base());
  ++header->layout_version;
  EXPECT_EQ(observer.view(segment.base(), segment.bytes()), Attached::other_layout);
  header->magic = 0;
  EXPECT_EQ(observer.view(segment.base(), segment.bytes()), Attached::other_file);
  segment.destroy();
}

}  // namespace
}  // namespace stretto::test
