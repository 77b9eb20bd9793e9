// SPDX-License-Identifier: BSD-3-Clause
// Alltoallv and Alltoallw by carriers: the ranks of a node tell each other lengths, then exchange
// short blocks by one message for each pair of nodes. Also with counts that do not agree.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <utility>

#include "engine/scheduler.hpp"
#include "threads/job.hpp"
#include "threads/mailbox.hpp"
#include "threads/scheduled.hpp"

namespace stretto::test {
namespace {

constexpr std::uint64_t kMost = kTuning.carried_bytes;

// The blocks of a call: how long each is, and how far the blocks of a rank lie apart beyond that.
struct Exchange {
  int ranks;
  bool in_place;
  std::vector<std::int32_t> lengths;  // from i to j at [i * ranks + j]

  Exchange(int size, std::uint64_t seed) : ranks(size), lengths(static_cast<std::size_t>(size * size)) {
    std::mt19937_64 random(seed);
    in_place = random() % 3 == 0;
    const bool sparse = random() % 3 == 0;
    constexpr std::int32_t kLengths[] = {0, 1, 8, 100, kMost, kMost + 1, 20'000};
    for (std::int32_t& length : lengths) length = sparse && random() % 4 != 0 ? 0 : kLengths[random() % 7];
    const int idle = static_cast<int>(random() % static_cast<unsigned>(size));
    for (int r = 0; r < size && sparse; ++r) at(idle, r) = at(r, idle) = 0;
    for (int i = 0; i < size && in_place; ++i) {
      for (int j = 0; j < i; ++j) at(i, j) = at(j, i);
    }
  }
  std::int32_t& at(int from, int to) { return lengths[static_cast<std::size_t>(from * ranks + to)]; }
};

// One rank's side of a call: blocks with gaps, in reversed order.
struct Side {
  std::vector<std::int32_t> counts, displs;
  std::vector<char> memory;

  template <class Length>
  Side(int ranks, Length length, char fill) {
    std::int32_t end = 0;
    displs.resize(static_cast<std::size_t>(ranks));
    for (int r = ranks - 1; r >= 0; --r) {
      displs[static_cast<std::size_t>(r)] = end + r % 3;
      end = displs[static_cast<std::size_t>(r)] + length(r);
    }
    for (int r = 0; r < ranks; ++r) counts.push_back(length(r));
    memory.assign(static_cast<std::size_t>(end) + 1, fill);
  }
  void write(int r, int from, int to) {
    for (std::int32_t i = 0; i < counts[static_cast<std::size_t>(r)]; ++i)
      memory[static_cast<std::size_t>(displs[static_cast<std::size_t>(r)] + i)] =
          static_cast<char>(from * 31 + to * 7 + i);
  }
  [[nodiscard]] Blocks blocks() { return {memory.data(), &kBytes, 0, counts.data(), displs.data(), false}; }
};

// What each rank does with its scheduler. Nodes have so many ranks, dealt out in blocks or in turn.
template <class Play>
void on_nodes(int ranks, const std::vector<int>& sizes, bool in_turn, Mailboxes& boxes, Play play) {
  static const char kText[] = "alltoallv: hierarchy:carriers\nalltoallw: hierarchy:carriers by=linear\n";
  select::Rules rules;
  FileError error;
  ASSERT_TRUE(rules.parse(kText, sizeof kText - 1, &error)) << error.what;
  topo::Placement placement;
  placement.start(ranks);
  ASSERT_TRUE(placement.add_level("node"));
  const int nodes = static_cast<int>(sizes.size());
  for (int r = 0, node = 0, there = 0; r < ranks; ++r) {
    for (; !in_turn && node + 1 < nodes && there == sizes[static_cast<std::size_t>(node)]; ++node) there = 0;
    placement.at(0, r) = in_turn ? r % nodes : node;
    ++there;
  }
  std::vector<std::jthread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      select::Selector selector;
      ASSERT_TRUE(selector.start({.ranks = ranks, .nodes = nodes}, rules));
      engine::Scheduler scheduler;
      shm::WaitPolicy policy;
      policy.spins = 100;
      policy.yield_after_ns = 0;
      ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, std::move(selector)));
      play(scheduler, r);
    });
  }
}

void play(engine::Scheduler& scheduler, int me, Exchange& call, Collective as) {
  const int ranks = call.ranks;
  Side out(ranks, [&](int r) { return call.at(me, r); }, 's'), in(ranks, [&](int r) { return call.at(r, me); }, 'r');
  Side expected = in;
  for (int r = 0; r < ranks; ++r) {
    out.write(r, me, r);
    expected.write(r, r, me);
    if (call.in_place) in.write(r, me, r);
  }
  const engine::Outcome outcome =
      engine::alltoall(scheduler, as, call.in_place ? Blocks{} : out.blocks(), in.blocks(), call.in_place, true);
  ASSERT_EQ(outcome.status, Status::ok);
  ASSERT_EQ(outcome.path, Path::schedule);
  ASSERT_EQ(in.memory, expected.memory);
}

TEST(CarriersTest, BlocksOfAllLengthsArrive) {
  const std::vector<int> shapes[] = {{1}, {1, 2}, {1, 1, 1}, {2, 3}, {3, 1, 3}, {2, 2, 2, 2}, {1, 5, 10}, {8}};
  std::uint64_t seed = 0;
  for (const std::vector<int>& sizes : shapes) {
    const int ranks = std::accumulate(sizes.begin(), sizes.end(), 0);
    for (const bool in_turn : {false, true}) {
      Mailboxes boxes(ranks, Sends::mixed, ++seed);
      on_nodes(ranks, sizes, in_turn, boxes, [&](engine::Scheduler& scheduler, int me) {
        for (int n = 0; n < 5 * kEffort && !testing::Test::HasFatalFailure(); ++n) {
          Exchange call(ranks, seed * 100 + static_cast<std::uint64_t>(n % 5));
          play(scheduler, me, call, n % 2 == 0 ? Collective::alltoallv : Collective::alltoallw);
        }
      });
      EXPECT_EQ(boxes.left_over(), 0u);
    }
  }
}

// Two ranks of a node have mixed up what they get, so that the nodes' messages are as long as they
// should be. Or a rank expects more than comes. The carriers find it out.
TEST(CarriersTest, CountsThatDoNotAgreeAreAnError) {
  for (const bool swapped : {true, false}) {
    constexpr int kRanks = 4;
    Mailboxes boxes(kRanks, Sends::buffered, 1);
    boxes.take_shorter();
    std::atomic<int> wrong = 0;
    on_nodes(kRanks, {2, 2}, false, boxes, [&](engine::Scheduler& scheduler, int me) {
      const auto sent = [](int from, int to) { return 8 * (1 + from + to); };
      const auto got = [&](int from) {
        return me == 3 && swapped && from < 2     ? sent(1 - from, me)
               : me == 3 && !swapped && from == 0 ? sent(from, me) + 8
                                                  : sent(from, me);
      };
      Side out(kRanks, [&](int r) { return sent(me, r); }, 's'), in(kRanks, got, 'r');
      const engine::Outcome outcome =
          engine::alltoall(scheduler, Collective::alltoallv, out.blocks(), in.blocks(), false, true);
      EXPECT_TRUE(outcome.status == Status::ok || outcome.status == Status::other_length);
      wrong += outcome.status == Status::other_length ? 1 : 0;
    });
    EXPECT_EQ(wrong, 1) << swapped;
  }
}

}  // namespace
}  // namespace stretto::test
