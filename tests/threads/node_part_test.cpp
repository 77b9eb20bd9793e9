// SPDX-License-Identifier: BSD-3-Clause
// The node's part of calls by schedule goes by tiers. Results are right, other nodes get the same
// messages, and nodes may decide each for itself.
#include "engine/node_part.hpp"

#include <deque>

#include "engine/process.hpp"
#include "threads/drawn_calls.hpp"
#include "threads/job.hpp"
#include "threads/mailbox.hpp"

namespace stretto::test {
namespace {

// Which nodes have tiers.
enum class Tiered { none, all, some };

class NodesOfRanks {
 public:
  NodesOfRanks(int ranks, int each) : ranks_(ranks), each_(each), boxes(ranks, Sends::mixed, 1) {
    placement.start(ranks);
    EXPECT_TRUE(placement.add_level_of("l3", 2) && placement.add_level_of("node", each) &&
                placement.add_level_of("switch", 2 * each));
    for (int first = 0; first < ranks; first += each) {
      std::vector<int> members;
      for (int r = first; r < std::min(ranks, first + each); ++r) members.push_back(r);
      ranks_of_.push_back(members);
      groups_.emplace_back(members);
    }
  }
  // Calls body(rank, scheduler, node's communicator).
  template <class Body>
  void run(Tiered tiered, Body body) {
    run_job(ranks_, {}, [&](int r, engine::Process& process) {
      const auto node = static_cast<std::size_t>(r / each_);
      const bool serves = tiered == Tiered::all || (tiered == Tiered::some && node % 2 == 0);
      shm::WaitPolicy policy;
      policy.spins = 100;
      policy.yield_after_ns = 0;
      engine::Scheduler scheduler;
      ASSERT_TRUE(scheduler.open(r, placement, {}, boxes.transport(r), policy, always(ranks_)));
      engine::Comm* const comm = make_comm(process, groups_[node], groups_[node].rank_of(r), nullptr, 0, serves);
      ASSERT_NE(comm, nullptr);
      EXPECT_EQ(comm->tiers != nullptr, serves && groups_[node].size() >= g_tiers->from_ranks);
      scheduler.join(comm, ranks_of_[node].data());
      body(r, scheduler, *comm);
    });
  }

 private:
  int ranks_, each_;
  std::vector<std::vector<int>> ranks_of_;
  std::deque<Group> groups_;

 public:
  topo::Placement placement;
  Mailboxes boxes;
};

class NodePartTest : public testing::TestWithParam<int> {
 protected:
  NodePartTest() { g_tiers = &kFabricatedTiers[GetParam()]; }
  ~NodePartTest() override { g_tiers = nullptr; }
  NodePartTest(const NodePartTest&) = delete;
  NodePartTest& operator=(const NodePartTest&) = delete;
};

TEST_P(NodePartTest, CallsFollowEachOther) {
  constexpr int kNode = 6;
  for (const int ranks : {9, 18, 20}) {
    std::uint64_t between = 0;
    for (const Tiered tiered : {Tiered::none, Tiered::all, Tiered::some}) {
      NodesOfRanks nodes(ranks, kNode);
      nodes.run(tiered,
                [&](int r, engine::Scheduler& scheduler, engine::Comm&) { play(scheduler, r, ranks, 12 * kEffort); });
      EXPECT_EQ(nodes.boxes.left_over(), 0u);
      std::uint64_t sent = 0;
      for (int from = 0; from < ranks; ++from) {
        for (int to = 0; to < ranks; ++to) {
          const bool near = from / kNode == to / kNode;
          if (near) EXPECT_EQ(nodes.boxes.sent(from, to), 0u);
          sent += near ? 0 : nodes.boxes.sent(from, to);
        }
      }
      if (tiered == Tiered::none) between = sent;
      EXPECT_EQ(sent, between);
    }
  }
}

// The ranks of a node count alike.
TEST_P(NodePartTest, EachCallHasThreeParts) {
  constexpr int kNode = 6, kRanks = 12;
  NodesOfRanks nodes(kRanks, kNode);
  nodes.run(Tiered::all, [&](int r, engine::Scheduler& scheduler, engine::Comm& node) {
    const std::uint64_t before = node.team->calls().made();
    engine::Scheduled barrier;
    barrier.problem = scheduler.problem(Collective::barrier);
    EXPECT_EQ(scheduler.run(barrier).status, Status::ok);
    EXPECT_EQ(node.team->calls().made(), before + 3) << r;  // up, the leaders' schedule, down
  });
}

INSTANTIATE_TEST_SUITE_P(Placements, NodePartTest, testing::Range(0, 5));

}  // namespace
}  // namespace stretto::test
