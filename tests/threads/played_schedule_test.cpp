// SPDX-License-Identifier: BSD-3-Clause
// Schedules that the driver of calls that return early plays, on real data.
#include "overlap/played_schedule.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "coll/algorithm.hpp"
#include "threads/job.hpp"
#include "threads/overlap_job.hpp"
#include "unit/faults_support.hpp"

namespace stretto::test {
namespace {

constexpr int kRanks = 5;
constexpr std::size_t kWord = sizeof(std::uint32_t);
constexpr std::pair<Collective, const char*> kPlayed[] = {{Collective::bcast, "pipeline"},
                                                          {Collective::reduce, "pipeline"},
                                                          {Collective::allreduce, "pipeline"},
                                                          {Collective::allgather, "pipeline"},
                                                          {Collective::gather, "flat"},
                                                          {Collective::scatter, "flat"},
                                                          {Collective::alltoall, "linear"},
                                                          {Collective::allgather, "linear"},
                                                          {Collective::scan, "pipeline"},
                                                          {Collective::exscan, "pipeline"},
                                                          {Collective::reduce_scatter, "pipeline"}};

std::uint32_t word(std::uint64_t call, int rank, std::uint64_t i) {
  return static_cast<std::uint32_t>((call * 64 + static_cast<unsigned>(rank) + i * 4096) * 0x9e3779b97f4a7c15u >> 32);
}

// What a rank gets: word i of its receive buffer.
std::uint32_t expected(const coll::Problem& p, std::uint64_t call, std::uint64_t i) {
  const std::uint64_t words = p.count / kWord, mine = static_cast<unsigned>(p.rank) * words;
  std::uint32_t sum = 0;
  switch (p.collective) {
    case Collective::bcast: return word(call, p.root, i);
    case Collective::scatter: return word(call, p.root, mine + i);
    case Collective::alltoall: return word(call, static_cast<int>(i / words), mine + i % words);
    case Collective::reduce:
    case Collective::allreduce:
      for (int r = 0; r < kRanks; ++r) sum += word(call, r, i);
      return sum;
    case Collective::reduce_scatter:
      for (int r = 0; r < kRanks; ++r) sum += word(call, r, mine + i);
      return sum;
    case Collective::scan:
    case Collective::exscan:
      for (int r = 0; r < p.rank + (p.collective == Collective::scan ? 1 : 0); ++r) sum += word(call, r, i);
      return sum;
    default: return word(call, static_cast<int>(i / words), i % words);
  }
}

// A buffer in one part for each rank, or in one part.
struct Buffer {
  Mapped memory;
  overlap::PlacedParts parts;

  Buffer(std::uint64_t bytes, std::uint64_t part) : memory(bytes + 1, 1) {
    EXPECT_TRUE(parts.start({memory.at(), &kPlainByte, part}, static_cast<int>(bytes / part)));
  }
  std::uint32_t* words() { return reinterpret_cast<std::uint32_t*>(memory.at()); }
};

// The ends of an Allreduce, which ranks have when all of them are in the call.
struct KnownEnds {
  static constexpr std::uint64_t kBytes = 4096;
  std::vector<std::uint32_t> words;
  std::atomic<int>& in_call;
  std::uint64_t begins[kRanks + 1];  // ranks 0 and 1 are a node, and the others

  KnownEnds(const coll::Problem& p, std::uint64_t call, std::atomic<int>& in_it) : in_call(in_it) {
    const std::uint64_t middle = p.count / 3 / 64 * 64, end = p.count - kBytes;
    const std::uint64_t all[] = {kBytes, kBytes, middle, middle, middle, end};
    std::copy_n(all, kRanks + 1, begins);
    for (const std::uint64_t at : {std::uint64_t{0}, end})
      for (std::uint64_t i = 0; i < kBytes; i += kWord) words.push_back(expected(p, call, (at + i) / kWord));
  }
  overlap::Ends of(const coll::Problem& p) {
    const auto bring = [](void* self, const overlap::Ends::Wait& wait) {
      auto& ends = *static_cast<KnownEnds*>(self);
      for (++ends.in_call; ends.in_call < kRanks && wait.goes_on(wait.context);) sys::nap_ns(100'000);
      return ends.in_call == kRanks ? reinterpret_cast<const char*>(ends.words.data()) : nullptr;
    };
    return {this, bring, {{0, kBytes}, {p.count - kBytes, kBytes}}};
  }
};

bool make_call(overlap::DeferredCalls& driver, const coll::Problem& p, const char* name, std::uint64_t call) {
  const coll::Extent units = coll::extent(p);
  Buffer send(units.send, p.count), receive(units.receive, p.count);
  const bool is_bcast = p.collective == Collective::bcast;
  std::uint32_t* const from = (is_bcast ? receive : send).words();
  for (std::uint64_t i = 0; i < (is_bcast ? units.receive : units.send) / kWord; ++i)
    if (!is_bcast || p.rank == p.root) from[i] = word(call, p.rank, i);
  coll::Builder builder;
  constexpr int kJobRanks[] = {0, 1, 2, 3, 4};
  overlap::PlayedSchedule played(send.parts, receive.parts, kJobRanks);
  overlap::Exchange exchange;
  exchange.call = call;
  exchange.may_return_early = call % 3 != 0;
  const bool is_exscan = p.collective == Collective::exscan;
  if (is_reduction(p.collective))
    exchange.fold = {[](void* out, const void* left, const void* right, std::size_t count) {
                       for (std::size_t i = 0; i < count; ++i)
                         static_cast<std::uint32_t*>(out)[i] =
                             static_cast<const std::uint32_t*>(left)[i] + static_cast<const std::uint32_t*>(right)[i];
                     },
                     kWord, !is_exscan};
  coll::Problem as = p;
  static std::atomic<int> in_calls[6 * std::size(kPlayed)] = {};
  std::optional<KnownEnds> ends;
  if (p.collective == Collective::allreduce && p.count >= 16 * KnownEnds::kBytes) {
    ends.emplace(p, call, in_calls[call]);
    exchange.ends = ends->of(p);
    as.begins = ends->begins;
    if (p.rank == static_cast<int>(call % kRanks)) sys::nap_ns(5'000'000);  // messages of others do not wait so long
  }
  if (is_exscan) as.collective = Collective::scan;  // whose messages it has
  const sched::Schedule schedule = coll::build(builder, *coll::find_algorithm(as.collective, name), as, {});
  for (const sched::Step& step : schedule.steps) {
    if (step.kind == sched::Kind::copy && !is_exscan)
      std::memcpy(receive.memory.at() + step.target_offset, send.memory.at() + step.source_offset, step.length);
  }
  EXPECT_TRUE(played.play(schedule, receive.parts.count() == kRanks ? p.rank : -1, &exchange));
  const overlap::DeferredCalls::Result result = driver.run(exchange, patient_policy());
  EXPECT_EQ(result.status, Status::ok);
  if (!is_bcast) std::fill_n(from, units.send / kWord, 0);  // the program's again
  std::uint64_t wrong = 0;
  const std::uint64_t words = is_exscan && p.rank == 0 ? 0 : units.receive / kWord;
  for (std::uint64_t i = words; i-- > 0;) wrong += receive.words()[i] != expected(p, call, i) ? 1 : 0;
  EXPECT_EQ(wrong, 0u) << name << " of " << kCollectiveNames[static_cast<int>(p.collective)] << ", call " << call
                       << ", rank " << p.rank << ", " << p.count << " bytes";
  driver.complete_all(patient_policy());
  return result.early;
}

TEST(PlayedSchedules, GiveTheRightData) {
  OverlapJob job(kRanks);
  std::atomic<int> early = 0;
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    std::mt19937_64 random(3);  // all ranks draw alike
    constexpr std::uint64_t kWords[] = {1, 1000, 4096, 4097, 50'001, 400'000};
    for (std::uint64_t call = 0; call < 6 * std::size(kPlayed); ++call) {
      const auto& [collective, name] = kPlayed[call % std::size(kPlayed)];
      coll::Problem p;
      p.collective = collective;
      p.size = kRanks;
      p.rank = rank;
      p.root = coll::has_root(collective) ? static_cast<int>(random() % kRanks) : 0;
      p.count = kWord * kWords[call / std::size(kPlayed)];
      p.commutative = true;
      early += make_call(driver, p, name, call) ? 1 : 0;
    }
  });
  if (job.can_guard()) EXPECT_GT(early, 0);
}

}  // namespace
}  // namespace stretto::test
