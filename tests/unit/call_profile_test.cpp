// SPDX-License-Identifier: BSD-3-Clause
// What a process learns of its calls, and what the arrivals of all ranks say: who waited for whom.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "observe/arrivals.hpp"

namespace stretto::test {
namespace {

using namespace observe;

using Profile = std::unique_ptr<CallProfile>;

constexpr std::uint64_t kMembers = 4711, kPlace = 0x401000;

ProfiledCall call_of(Collective collective, std::uint32_t number, std::uint64_t began_ns, std::uint64_t ns,
                     bool is_root = false) {
  return {collective, false, is_root, 0, number, 100, kPlace, began_ns, ns};
}

// Ranks whose clocks show the same time.
struct Job {
  explicit Job(unsigned ranks) {
    for (unsigned r = 0; r < ranks; ++r) {
      of.push_back(std::make_unique<CallProfile>(1'000'000));
      EXPECT_EQ(of[r]->add_communicator(kMembers, ranks, r), 0);
    }
  }
  // Each rank's own arrival and time, of a call that all make.
  void call(Collective collective, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& times, int root = -1) {
    for (unsigned r = 0; r < of.size(); ++r)
      of[r]->record(call_of(collective, number, times[r].first, times[r].second, static_cast<int>(r) == root));
    ++number;
  }
  std::vector<RankWaits> compare(const std::vector<std::int64_t>& clocks = {}) {
    Arrivals arrivals(static_cast<int>(of.size()));
    for (unsigned r = 0; r < of.size(); ++r) {
      KeptHead head = {of[r]->origin_ns(), {}, {}, static_cast<std::uint32_t>(of[r]->kept().size()), 1};
      if (!clocks.empty()) head.end = {5'000'000, clocks[r], 0};
      arrivals.add(head, of[r]->communicators(), of[r]->kept().data());
    }
    std::vector<RankWaits> waits(of.size());
    EXPECT_TRUE(arrivals.compare(waits.data()));
    return waits;
  }
  std::vector<Profile> of;
  std::uint32_t number = 0;
};

const Compared& of(const RankWaits& waits, Collective collective) { return waits.of[static_cast<int>(collective)]; }

TEST(Arrivals, RanksWaitForTheLast) {
  Job job(3);
  job.call(Collective::allreduce, {{2'000'000, 700}, {2'000'100, 600}, {2'000'500, 200}});
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::allreduce).waiting_ns, 500u);
  EXPECT_EQ(of(waits[1], Collective::allreduce).waiting_ns, 400u);
  EXPECT_EQ(of(waits[2], Collective::allreduce).waiting_ns, 0u);
  EXPECT_EQ(of(waits[0], Collective::allreduce).ns, 700u);
  EXPECT_EQ(waits[2].caused_ns, 900u);
  EXPECT_EQ(waits[2].late_calls, 1u);
  EXPECT_EQ(waits[0].late_calls, 0u);
  EXPECT_EQ(waits[0].waited_for[0].rank, 2);
  EXPECT_EQ(waits[0].waited_for[0].ns, 500u);
  EXPECT_EQ(waits[0].waited_for[1].rank, -1);
}

TEST(Arrivals, OnlyTheRootHoldsUpABcast) {
  Job job(3);
  job.call(Collective::bcast, {{2'000'000, 300}, {2'000'200, 50}, {2'009'000, 40}}, 1);
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::bcast).waiting_ns, 200u);
  EXPECT_EQ(of(waits[1], Collective::bcast).waiting_ns, 0u) << "the root waits for nobody";
  EXPECT_EQ(of(waits[2], Collective::bcast).waiting_ns, 0u) << "it came after the root";
  EXPECT_EQ(waits[1].caused_ns, 200u);
}

TEST(Arrivals, OnlyTheRootWaitsInAReduce) {
  Job job(3);
  job.call(Collective::reduce, {{2'000'000, 900}, {2'000'400, 50}, {2'000'800, 40}}, 0);
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::reduce).waiting_ns, 800u);
  EXPECT_EQ(of(waits[1], Collective::reduce).waiting_ns, 0u);
  EXPECT_EQ(waits[2].caused_ns, 800u);
}

TEST(Arrivals, AScanWaitsForRanksBelow) {
  Job job(3);
  job.call(Collective::scan, {{2'000'300, 10}, {2'000'000, 400}, {2'000'900, 30}});
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::scan).waiting_ns, 0u);
  EXPECT_EQ(of(waits[1], Collective::scan).waiting_ns, 300u);
  EXPECT_EQ(of(waits[2], Collective::scan).waiting_ns, 0u);
  EXPECT_EQ(waits[0].caused_ns, 300u);
}

TEST(Arrivals, AWaitEndsWithTheCall) {
  Job job(2);
  job.call(Collective::gather, {{2'000'000, 100}, {2'005'000, 10}}, 0);
  EXPECT_EQ(of(job.compare()[0], Collective::gather).waiting_ns, 100u);
}

TEST(Arrivals, ClocksMayDiffer) {
  Job job(2);
  job.call(Collective::barrier, {{2'000'000, 500}, {7'000'400, 100}});
  EXPECT_EQ(of(job.compare({0, 5'000'000})[0], Collective::barrier).waiting_ns, 400u);
}

TEST(Arrivals, CallsThatDifferAreNotCompared) {
  Job job(2);
  job.of[0]->record(call_of(Collective::bcast, 0, 2'000'000, 10));
  job.of[1]->record(call_of(Collective::reduce, 0, 2'000'000, 10));
  job.of[0]->record(call_of(Collective::barrier, 1, 2'000'000, 10));
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::bcast).calls, 0u);
  EXPECT_EQ(of(waits[0], Collective::barrier).calls, 0u) << "rank 1 has not made it";
}

TEST(ClockOffset, IsBoundedByBarriers) {
  ClockRound mine[kClockRounds], root[kClockRounds];
  for (unsigned i = 0; i < kClockRounds; ++i) {
    root[i] = {1000 + 100 * i, 1040 + 100 * i};
    mine[i] = {901'010 + 100 * i, 901'030 + 100 * i};
  }
  const ClockOffset offset = clock_offset(mine, root);
  EXPECT_EQ(offset.more_ns, 900'000);
  EXPECT_EQ(offset.error_ns, 30u);
  EXPECT_EQ(clock_offset(root, root).more_ns, 0);
}

TEST(CallProfile, ProcessesKeepTheSameCalls) {
  Job job(2);
  const std::uint32_t calls = 5 * CallProfile::kKept;
  for (std::uint32_t n = 0; n < calls; ++n) {
    for (Profile& profile : job.of) profile->record(call_of(Collective::barrier, n, 2'000'000 + n, 10));
  }
  ASSERT_EQ(job.of[0]->kept().size(), job.of[1]->kept().size());
  EXPECT_LE(job.of[0]->kept().size(), CallProfile::kKept);
  EXPECT_GE(job.of[0]->kept().size(), CallProfile::kKept / 8);
  job.of[1]->thin(500);
  EXPECT_LE(job.of[1]->kept().size(), 500u);
  const auto waits = job.compare();
  EXPECT_EQ(of(waits[0], Collective::barrier).calls, job.of[1]->kept().size()) << "all that rank 1 has left";
  EXPECT_EQ(job.of[0]->sizes(0).of[7].calls, calls) << "100 bytes are between 64 and 127";
}

TEST(CallProfile, PlacesAreKeptApart) {
  const Profile profile = std::make_unique<CallProfile>(0);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    ProfiledCall call = call_of(Collective::bcast, 0, n, 5);
    call.communicator = -1;
    call.caller = kPlace + n % 3;
    EXPECT_EQ(profile->record(call), nullptr);
  }
  std::uint64_t calls = 0;
  unsigned places = 0;
  for (unsigned s = 0; s < CallProfile::kSites; ++s) {
    places += profile->is_used(s) ? 1 : 0;
    calls += profile->is_used(s) ? profile->at(s).calls : 0;
  }
  EXPECT_EQ(places, 3u);
  EXPECT_EQ(calls, 1000u);
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    ProfiledCall call = call_of(Collective::bcast, 0, n, 5);
    call.communicator = -1;
    call.caller = n * 64;
    profile->record(call);
  }
  EXPECT_GT(profile->calls_without_site(), 0u);
}

TEST(CallProfile, LinesBehindABindingAreSites) {
  Job job(2);
  CallProfile& profile = *job.of[0];
  KeptCall* kept = profile.record(call_of(Collective::bcast, 0, 2'000'000, 70));
  ASSERT_NE(kept, nullptr);
  const std::uint16_t binding = kept->site;
  profile.set_line(*kept, "solve.py:33 in step", 0);
  const ProfileSite& line = profile.at(kept->site);
  EXPECT_STREQ(line.text, "solve.py:33 in step");
  EXPECT_EQ(line.behind, binding + 1);
  EXPECT_EQ(line.ns, 70u);
  EXPECT_EQ(profile.at(binding).calls, 1u);
}

}  // namespace
}  // namespace stretto::test
