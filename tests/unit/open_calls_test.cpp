// SPDX-License-Identifier: BSD-3-Clause
// Collectives that had not ended when a job was stopped: who waited there, and for whom.
#include "keeper/open_calls.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace stretto::test {
namespace {

using namespace observe;
using keeper::Account;
using keeper::OpenCalls;

constexpr std::uint64_t kMembers = 4711, kBegan = 1'000'000, kCut = 9'000'000;

// Ranks of one host that are in MPI_COMM_WORLD, and were cut short at kCut.
struct Stopped {
  explicit Stopped(int ranks) {
    for (int r = 0; r < ranks; ++r) {
      of.push_back(std::make_unique<Account>());
      of[r]->page.rank = r;
      of[r]->page.ranks = ranks;
      of[r]->page.profile.start_at(kBegan);
    }
  }
  void knows(int rank) {
    EXPECT_EQ(of[rank]->page.profile.add_communicator(kMembers, static_cast<std::uint32_t>(of.size()),
                                                      static_cast<std::uint32_t>(rank)),
              0);
  }
  void ended(int rank, Collective collective, std::uint32_t number) {
    of[rank]->page.profile.record({collective, false, false, 0, number, 8, 0x401000, kBegan + number, 1});
  }
  void opens(int rank, Collective collective, std::uint32_t number, std::uint64_t began_ns, int root = -1) {
    of[rank]->page.open = {began_ns, 0x402000, number, root, 0, collective};
  }
  std::vector<OpenCalls> find() { return keeper::open_calls(of, kCut); }
  std::vector<RankWaits> compare(const std::vector<OpenCalls>& open) {
    Arrivals arrivals(static_cast<int>(of.size()));
    std::vector<std::vector<KeptCall>> calls(of.size());
    for (std::size_t r = 0; r < of.size(); ++r) {
      const CallProfile& profile = of[r]->page.profile;
      calls[r].assign(profile.kept().begin(), profile.kept().end());
      for (const OpenCalls& each : open) {
        if (each.kept.contains(static_cast<int>(r))) calls[r].push_back(each.kept.at(static_cast<int>(r)));
      }
      arrivals.add(
          {profile.origin_ns(), {}, {}, static_cast<std::uint32_t>(calls[r].size()), profile.communicator_count()},
          profile.communicators(), calls[r].data());
    }
    std::vector<RankWaits> waits(of.size());
    EXPECT_TRUE(arrivals.compare(waits.data()));
    return waits;
  }
  std::vector<std::unique_ptr<Account>> of;
};

TEST(OpenCalls, ALateRankThatHasCalledNothingIsNamed) {
  Stopped job(3);
  for (int r = 0; r < 2; ++r) {
    job.knows(r);
    job.opens(r, Collective::barrier, 0, 2'000'000 + 1'000'000 * static_cast<std::uint64_t>(r));
  }
  const auto open = job.find();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].waiting, (std::vector<int>{0, 1}));
  EXPECT_EQ(open[0].late, std::vector<int>{2});
  EXPECT_EQ(open[0].longest_ns, 7'000'000u);
  const auto waits = job.compare(open);
  EXPECT_EQ(waits[2].caused_ns, 7'000'000u + 6'000'000u);
  EXPECT_EQ(job.of[0]->page.counters.of[static_cast<int>(Collective::barrier)].ns, 7'000'000u);
}

TEST(OpenCalls, TheLateRootOfABcast) {
  Stopped job(3);
  for (int r = 0; r < 3; ++r) {
    job.knows(r);
    job.ended(r, Collective::allreduce, 0);
  }
  for (int r = 0; r < 2; ++r) job.opens(r, Collective::bcast, 1, 4'000'000, 2);
  const auto open = job.find();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].late, std::vector<int>{2});
  EXPECT_EQ(job.compare(open)[2].caused_ns, 2 * 5'000'000u);
}

TEST(OpenCalls, ARankThatHasLeftTheCallIsNotLate) {
  Stopped job(3);
  for (int r = 0; r < 3; ++r) job.knows(r);
  job.ended(1, Collective::gather, 0);  // rank 1 has sent its part
  job.opens(0, Collective::gather, 0, 3'000'000, 0);
  const auto open = job.find();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].late, std::vector<int>{2});
  const auto waits = job.compare(open);
  EXPECT_EQ(waits[2].caused_ns, 6'000'000u);
  EXPECT_EQ(waits[1].caused_ns, 0u);
}

TEST(OpenCalls, ACallThatBeganAfterTheFirstEndDoesNotCount) {
  Stopped job(2);
  for (int r = 0; r < 2; ++r) job.knows(r);
  job.opens(0, Collective::barrier, 0, kCut + 5);
  EXPECT_TRUE(job.find().empty());
}

TEST(OpenCalls, ARankThatWasNotReadIsNeitherLateNorThere) {
  Stopped job(3);
  job.knows(0);
  job.opens(0, Collective::barrier, 0, 2'000'000);
  job.of[1] = nullptr;
  const auto open = job.find();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].late, std::vector<int>{2});
}

TEST(StatsPage, TornMemoryIsNotSound) {
  int descriptor = -1;
  StatsPage* const page = StatsPage::create(1, &descriptor);
  ASSERT_NE(page, nullptr);
  EXPECT_GE(descriptor, 0);
  EXPECT_FALSE(page->is_sound()) << "it has no rank yet";
  page->rank = 1;
  page->ranks = 2;
  EXPECT_TRUE(page->is_sound());
  page->open.collective = static_cast<Collective>(99);
  EXPECT_FALSE(page->is_sound());
  page->open.collective = Collective::bcast;
  std::memset(page->host, 'x', sizeof page->host);
  EXPECT_FALSE(page->is_sound());
}

}  // namespace
}  // namespace stretto::test
