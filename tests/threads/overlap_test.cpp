// SPDX-License-Identifier: BSD-3-Clause
// Calls that return before their data are there, between ranks that are threads. Kernel faults, as
// one process can have one handler of system calls only.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <span>

#include "threads/job.hpp"
#include "threads/local_fabric.hpp"
#include "threads/overlap_job.hpp"
#include "transport/bulk/bulk_transport.hpp"
#include "transport/fabric/libfabric.hpp"
#include "transport/pass.hpp"
#include "unit/faults_support.hpp"

namespace stretto::test {
namespace {

using overlap::Exchange;

// What a call moves. The spans must outlive it.
Exchange exchange_of(std::span<const overlap::MessageOut> sends, std::span<const overlap::MessageIn> receives,
                     std::span<const overlap::Block> blocks, char* buffer, std::uint64_t bytes) {
  Exchange made;
  made.sends = sends;
  made.receives = receives;
  made.blocks = blocks;
  made.buffer = buffer;
  made.buffer_bytes = bytes;
  return made;
}

// A message that is a block of the call.
overlap::MessageIn whole(int peer, overlap::Block range, std::vector<overlap::Block>& blocks) {
  blocks.push_back(range);
  overlap::MessageIn made{peer, range};
  made.block = static_cast<std::uint32_t>(blocks.size() - 1);
  return made;
}

char byte_of(int from, int to, std::uint64_t call, std::uint64_t i) {
  return static_cast<char>((i * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(from * 64 + to) * 977 + call * 31) >>
                           56);
}

// The blocks of one rank in an Alltoallv that all draw alike.
struct Drawn {
  std::vector<std::uint64_t> bytes;  // by sender, then receiver
  std::vector<std::uint64_t> begins;
  int ranks;
  [[nodiscard]] std::uint64_t of(int from, int to) const { return bytes[from * ranks + to]; }
};

Drawn draw(int ranks, std::uint64_t seed, std::uint64_t most) {
  std::mt19937_64 random(seed);
  Drawn all{{}, {}, ranks};
  for (int i = 0; i < ranks * ranks; ++i) {
    const std::uint64_t kind = random() % 4;
    all.bytes.push_back(kind == 0 ? 0 : kind == 1 ? random() % 5000 : random() % most);
  }
  return all;
}

// One call. Reads the result in an order of its own, and returns whether it came early.
bool make_call(overlap::DeferredCalls& driver, int rank, const Drawn& all, std::uint64_t call, char* buffer,
               std::vector<char>& out) {
  std::mt19937_64 random(call * 64 + static_cast<unsigned>(rank));
  std::vector<overlap::MessageOut> sends;
  std::vector<overlap::MessageIn> receives;
  std::vector<overlap::Block> blocks;
  std::vector<std::uint64_t> begins(all.ranks);
  std::uint64_t sent = 0, got = 0;
  overlap::Block own;
  out.clear();
  for (int to = 0; to < all.ranks; ++to) {
    for (std::uint64_t i = 0; i < all.of(rank, to); ++i) out.push_back(byte_of(rank, to, call, i));
  }
  for (int peer = 0; peer < all.ranks; ++peer) {
    begins[peer] = got;
    if (peer == rank) {
      own = {got, all.of(rank, rank)};
      std::copy_n(out.data() + sent, own.bytes, buffer + got);
    } else {
      if (all.of(rank, peer) != 0) sends.push_back({peer, out.data() + sent, all.of(rank, peer)});
      if (all.of(peer, rank) != 0) receives.push_back(whole(peer, {got, all.of(peer, rank)}, blocks));
    }
    sent += all.of(rank, peer);
    got += all.of(peer, rank);
    if (random() % 3 == 0) got += random() % 3000;  // a gap, which is the program's
  }
  std::shuffle(sends.begin(), sends.end(), random);
  blocks.push_back(own);
  Exchange exchange = exchange_of(sends, receives, blocks, buffer, got);
  exchange.comm = 7;
  exchange.call = call;
  exchange.own = own;
  exchange.may_return_early = true;
  if (random() % 3 == 0) sys::nap_ns(random() % 3'000'000);
  const overlap::DeferredCalls::Result result = driver.run(exchange, patient_policy());
  EXPECT_EQ(result.status, Status::ok);
  std::fill(out.begin(), out.end(), 'x');  // the program may change what it has sent
  std::vector<int> order(all.ranks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const bool backward = random() % 2 != 0;
  for (const int from : order) {
    const std::uint64_t bytes = all.of(from, rank);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < bytes; ++i) {
      const std::uint64_t at = backward ? bytes - 1 - i : i;
      wrong += buffer[begins[from] + at] != byte_of(from, rank, call, at) ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0u) << "of " << bytes << " bytes from " << from << " to " << rank;
  }
  return result.early;
}

void calls_in_a_row(int ranks, int calls, std::uint64_t most, const DriverJob::FabricOf& fabric = {}) {
  OverlapJob job(ranks, fabric);
  if (!job.can_guard()) GTEST_SKIP() << "kernel faults need privilege here";
  std::atomic<int> early = 0;
  std::vector<Drawn> all;
  for (int i = 0; i < calls; ++i) all.push_back(draw(ranks, static_cast<unsigned>(ranks * 100 + i), most));
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    const Mapped memory(ranks * (most + 3000), 1);
    std::vector<char> out;
    std::mt19937_64 random(static_cast<unsigned>(rank));
    for (int i = 0; i < calls; ++i) {
      const std::uint64_t shift = random() % 2 != 0 ? 0 : random() % 3000;
      early += make_call(driver, rank, all[i], static_cast<unsigned>(i), memory.at() + shift, out) ? 1 : 0;
      if (random() % 2 == 0) driver.complete_all(patient_policy());
      // The next call's buffer has pages of this one's: who makes calls completes what they touch.
      driver.complete(memory.at(), memory.pages().bytes, patient_policy());
    }
    driver.complete_all(patient_policy());
  });
  EXPECT_GT(early, 0);
}

TEST(Overlap, DataComeAfterTheCallBetweenTwo) { calls_in_a_row(2, 4 + 2 * kEffort, 4'000'000); }
TEST(Overlap, DataComeAfterTheCallAmongThree) { calls_in_a_row(3, 7 + kEffort, 2'000'000); }
TEST(Overlap, DataComeAfterTheCallAmongFive) { calls_in_a_row(5, 10, 500'000); }

TEST(Overlap, DataComeByRemoteReads) {
  std::deque<LocalFabric> networks;
  calls_in_a_row(3, 7 + kEffort, 2'000'000, [&](int rank) { return &networks.emplace_back(rank + 1); });
  for (const LocalFabric& network : networks) EXPECT_GT(network.begun, 0);
}

TEST(Overlap, DataComeByLibfabric) {
  const sys::HostAddress loopback{htonl(INADDR_LOOPBACK), ~0u};
  std::deque<transport::Libfabric> networks;
  if (!networks.emplace_back().find({"tcp", &loopback, 1})) GTEST_SKIP() << networks.back().why();
  calls_in_a_row(3, 7 + kEffort, 2'000'000, [&](int) {
    EXPECT_TRUE(networks.emplace_back().find({"tcp", &loopback, 1}));
    return &networks.back();
  });
}

// Calls whose buffers are apart are pending at the same time.
TEST(Overlap, SeveralCallsArePending) {
  constexpr int kRanks = 3, kCalls = 6;
  constexpr std::uint64_t kMost = 200'000;
  OverlapJob job(kRanks);
  if (!job.can_guard()) GTEST_SKIP() << "kernel faults need privilege here";
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    std::deque<Mapped> buffers;
    std::vector<std::vector<char>> out(kCalls);
    for (int i = 0; i < kCalls; ++i) buffers.emplace_back(kRanks * kMost, 1);
    std::vector<std::vector<overlap::MessageIn>> receives(kCalls);
    std::vector<std::vector<overlap::Block>> blocks(kCalls);
    for (int i = 0; i < kCalls; ++i) {
      std::vector<overlap::MessageOut> sends;
      out[i].resize(kRanks * kMost);
      for (int peer = 0; peer < kRanks; ++peer) {
        char* const data = out[i].data() + peer * kMost;
        for (std::uint64_t b = 0; b < kMost; ++b) data[b] = byte_of(rank, peer, static_cast<unsigned>(i), b);
        if (peer == rank) continue;
        sends.push_back({peer, data, kMost});
        receives[i].push_back(whole(peer, {peer * kMost, kMost}, blocks[i]));
      }
      Exchange exchange = exchange_of(sends, receives[i], blocks[i], buffers[i].at(), kRanks * kMost);
      exchange.comm = 1;
      exchange.call = static_cast<unsigned>(i);
      exchange.may_return_early = true;
      EXPECT_EQ(driver.run(exchange, patient_policy()).status, Status::ok);
      std::fill(out[i].begin(), out[i].end(), 'x');
    }
    for (int i = kCalls; i-- > 0;) {
      for (const overlap::MessageIn& each : receives[i]) {
        std::uint64_t wrong = 0;
        for (std::uint64_t b = 0; b < kMost; ++b)
          wrong += buffers[i].at()[each.range.offset + b] != byte_of(each.peer, rank, static_cast<unsigned>(i), b);
        EXPECT_EQ(wrong, 0u);
      }
    }
    driver.complete_all(patient_policy());
  });
}

// The program's statistics name its own calls.
// A chain of ranks, each of which combines its numbers with those that pass. Rank 0 gets them.
// Returns whether the call came early.
bool sum_along_a_chain(overlap::DeferredCalls& driver, int rank, int ranks, std::uint64_t call,
                       std::vector<int>& numbers, int* sums) {
  constexpr std::uint64_t kEnd = 4096, kSegment = 100'000;
  const std::uint64_t bytes = numbers.size() * sizeof(int);
  const auto* const own = reinterpret_cast<const char*>(numbers.data());
  std::vector<overlap::Block> pieces = {{bytes - kEnd, kEnd}, {0, kEnd}};  // the ends first
  for (std::uint64_t at = kEnd; at < bytes - kEnd; at += kSegment)
    pieces.push_back({at, std::min(kSegment, bytes - kEnd - at)});
  std::vector<overlap::MessageOut> sends;
  std::vector<overlap::MessageIn> receives;
  std::vector<overlap::Block> blocks;
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    const char* const mine = own + pieces[i].offset;
    if (rank == ranks - 1)
      sends.push_back({rank - 1, mine, pieces[i].bytes, i});
    else
      receives.push_back({rank + 1, pieces[i], i, rank - 1, overlap::MessageIn::kNoBlock, i < 2, mine, rank == 0, i});
  }
  if (rank == 0) blocks.push_back({0, bytes});
  Exchange exchange =
      exchange_of(sends, receives, blocks, rank == 0 ? reinterpret_cast<char*>(sums) : nullptr, rank == 0 ? bytes : 0);
  exchange.comm = 9;
  exchange.call = call;
  exchange.fold = {[](void* out, const void* left, const void* right, std::size_t count) {
                     for (std::size_t i = 0; i < count; ++i)
                       static_cast<int*>(out)[i] = static_cast<const int*>(left)[i] - static_cast<const int*>(right)[i];
                   },
                   sizeof(int)};
  exchange.may_return_early = call % 3 != 0;
  const overlap::DeferredCalls::Result result = driver.run(exchange, patient_policy());
  EXPECT_EQ(result.status, Status::ok);
  std::fill(numbers.begin(), numbers.end(), -1);  // the program's again
  return result.early;
}

TEST(Overlap, ContributionsAreCombinedOnTheirWay) {
  constexpr int kRanks = 4;
  constexpr std::size_t kNumbers = 300'001;
  OverlapJob job(kRanks);
  if (!job.can_guard()) GTEST_SKIP() << "kernel faults need privilege here";
  const Mapped result(kNumbers * sizeof(int), 1);
  auto* const sums = reinterpret_cast<int*>(result.at());
  std::atomic<int> early = 0;
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    std::vector<int> numbers(kNumbers);
    for (std::uint64_t call = 1; call <= 12; ++call) {
      if ((call + static_cast<unsigned>(rank)) % 4 == 0) sys::nap_ns(2'000'000);
      for (std::size_t i = 0; i < kNumbers; ++i)
        numbers[i] = static_cast<int>(i * (static_cast<unsigned>(rank) + 1) + call);
      early += sum_along_a_chain(driver, rank, kRanks, call, numbers, sums) && rank == 0 ? 1 : 0;
      if (rank != 0) continue;
      long wrong = 0;  // c3 - c2 - c1 - c0
      for (std::size_t i = kNumbers; i-- > 0;) wrong += sums[i] != static_cast<int>(i * (4 - 3 - 2 - 1) - 2 * call);
      EXPECT_EQ(wrong, 0) << "call " << call;
      driver.complete(sums, kNumbers * sizeof(int), patient_policy());
    }
    driver.complete_all(patient_policy());
  });
  EXPECT_GT(early, 0);
}

TEST(Overlap, MeasuringHasNoSite) {
  OverlapJob job(2);
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    constexpr std::uint64_t kBytes = 100'000;
    const Mapped from(kBytes, 3), to(kBytes, 1);
    for (const bool measures : {true, false}) {
      const overlap::MessageOut send{1 - rank, from.at(), kBytes};
      std::vector<overlap::Block> blocks;
      const overlap::MessageIn receive = whole(1 - rank, {0, kBytes}, blocks);
      Exchange exchange = exchange_of({&send, 1}, {&receive, 1}, blocks, to.at(), kBytes);
      exchange.call = measures ? ~std::uint64_t{0} : 0;
      exchange.name = "Alltoall";
      exchange.is_measuring = measures;
      EXPECT_EQ(driver.run(exchange, patient_policy()).status, Status::ok);
      std::uint64_t calls = 0;
      driver.each_site([&](const overlap::Sites::Site& site) { calls += site.counts.calls; });
      EXPECT_EQ(calls, measures ? 0u : 1u);
    }
    EXPECT_TRUE(all_are(to.at(), kBytes, 3));
  });
}

// A program may free a buffer whose data are under way. Then another message may get that memory.
// The thread that brings the data must not wait for them.
TEST(Overlap, MemoryOfOtherMessagesComesHomeFirst) {
  static overlap::DeferredCalls* calls = nullptr;
  OverlapJob job(2);
  if (!job.can_guard()) GTEST_SKIP() << "kernel faults need privilege here";
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    constexpr std::uint64_t kBytes = 64 << 20, kShort = 1000;
    constexpr int kRanks[] = {0, 1};
    if (rank == 0) calls = &driver;
    const Mapped from(kBytes, 3), to(kBytes, 1);
    const overlap::MessageOut send{1 - rank, from.at(), kBytes};
    std::vector<overlap::Block> blocks;
    const overlap::MessageIn receive = whole(1 - rank, {0, kBytes}, blocks);
    Exchange exchange = exchange_of({&send, 1}, {&receive, 1}, blocks, to.at(), kBytes);
    exchange.may_return_early = true;
    EXPECT_EQ(driver.run(exchange, patient_policy()).status, Status::ok);
    bulk::BulkTransport other;
    const auto bring_home = [](const void* memory, std::uint64_t bytes) { calls->bring_home(memory, bytes); };
    other.start(job.messages(rank), 8, kRanks, 2, rank == 0 ? +bring_home : nullptr);
    std::vector<char> word(kShort, 9);
    char* const data = rank == 0 ? to.at() + kBytes - kShort : word.data();
    EXPECT_TRUE(transport::pass(other.transport(), patient_policy(), 1 - rank, rank == 1, data, kShort));
    driver.complete_all(patient_policy());
    if (rank == 0) EXPECT_TRUE(all_are(to.at(), kBytes - kShort, 3) && all_are(data, kShort, 9));
  });
}

// A peer that gives up ends the calls of the others, before they have returned.
TEST(Overlap, APeerThatGivesUpIsHeardOf) {
  OverlapJob job(2);
  job.run([&](int rank, overlap::DeferredCalls& driver) {
    constexpr std::uint64_t kBytes = 300'000;
    const Mapped memory(kBytes, 1);
    if (rank == 1) {
      sys::nap_ns(20'000'000);
      driver.abandon(0, 5);
      return;
    }
    const overlap::MessageOut send{1, memory.at(), 10};
    std::vector<overlap::Block> blocks;
    const overlap::MessageIn receive = whole(1, {0, kBytes}, blocks);
    Exchange exchange = exchange_of({&send, 1}, {&receive, 1}, blocks, memory.at(), kBytes);
    exchange.comm = 5;
    exchange.may_return_early = true;
    const overlap::DeferredCalls::Result result = driver.run(exchange, patient_policy());
    EXPECT_EQ(result.status, Status::peer_failed);
    EXPECT_FALSE(result.early);
    EXPECT_TRUE(all_are(memory.at(), kBytes, 1));
  });
}

}  // namespace
}  // namespace stretto::test
