// SPDX-License-Identifier: BSD-3-Clause
// What communicators take of a node's shared memory, as a function of their ranks. All ranks are in
// this thread, each with a segment of its own.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <vector>

#include "shm/lane.hpp"
#include "shm/message.hpp"
#include "shm/segment.hpp"
#include "shm/team.hpp"
#include "topo/groups.hpp"

namespace stretto::shm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20, kLanesBytes = 4096;
constexpr unsigned kMostMembers = topo::Groups::kMostLeaders;

bool back(void* segment, std::uint64_t offset, std::size_t bytes) {
  return static_cast<Segment*>(segment)->back(offset, bytes);
}

// A rank's part of one communicator.
struct Part {
  Team* team = nullptr;
  char* block = nullptr;
  topo::Groups groups;
  char* tier_blocks[topo::Groups::kMostLevels] = {};
  Team* tiers[topo::Groups::kMostLevels] = {};
};

class Node {
 public:
  explicit Node(int ranks) : ranks_(ranks), segments_(static_cast<std::size_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(segment(r).create(64 * kMiB, kLanesBytes), Status::ok);
      lanes_.push_back(std::make_unique<Lanes>(kMessageStates));
      lanes_.back()->init(&segment(r), 1, 4096, 0);
    }
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() {
    for (auto& comm : comms_) {
      for (Part& part : comm) Team::destroy(part.team);
    }
    for (Segment& segment : segments_) segment.destroy();
  }

  void make_comm() {
    const BlockLayout layout{static_cast<unsigned>(ranks_)}, tier{kMostMembers, true};
    std::vector<Part>& comm = comms_.emplace_back(static_cast<std::size_t>(ranks_));
    for (int r = 0; r < ranks_; ++r) {
      Part& part = comm[static_cast<std::size_t>(r)];
      part.block = make_block(r, layout.bytes());
      part.team = Team::create(r, ranks_, instance(r), part.block, lanes_[static_cast<std::size_t>(r)]->team_memory());
      EXPECT_TRUE(part.groups.find(r, ranks_, nullptr, topo::kShortPlan));
      for (int t = 0; t < part.groups.count(); ++t) {
        Team::reset_tier(part.tier_blocks[t] = make_block(r, tier.bytes()), kMostMembers);
      }
      for (const unsigned members : {layout.size, kMostMembers})  // those of rails
        Team::reset_tier(make_block(r, Directory::bytes(members)), members);
      part.team->settle(1, {}, {4096, 4096, 4096, 1});
      const std::uint64_t place = segment(r).place_allocate(layout.place_bytes());
      part.team->move_to({segment(r).base(), &segment(r), nullptr, place, back});
    }
    for (int r = 0; r < ranks_; ++r) connect(comm, r);
  }

  // Up and down the tiers: what an Allreduce of a few bytes does with queues.
  void go_by_tiers() {
    std::vector<Part>& comm = comms_.back();
    for (int t = 0; t < topo::Groups::kMostLevels; ++t) {
      each_tier(comm, t, [](Part& part, int tier) {
        if (part.groups[tier].index != 0) publish(*part.tiers[tier], part.tiers[tier]->to(0));
      });
      each_tier(comm, t, [](Part& part, int tier) {
        if (part.groups[tier].index != 0) return;
        for (int m = 1; m < part.groups[tier].size(); ++m) read(part.tiers[tier]->channel(m));
        publish(*part.tiers[tier], part.tiers[tier]->board());
      });
      each_tier(comm, t, [](Part& part, int tier) {
        if (part.groups[tier].index != 0) read(part.tiers[tier]->member(0).board);
      });
    }
  }

  // By rank 0 and back: what an Allreduce of a few bytes does among ranks without processors.
  void go_by_root() {
    std::vector<Part>& comm = comms_.back();
    for (Part& part : comm) {
      if (part.team->rank() != 0) publish(*part.team, part.team->to(0));
    }
    for (int r = 1; r < ranks_; ++r) read(comm.front().team->channel(r));
    publish(*comm.front().team, comm.front().team->board());
    for (Part& part : comm) {
      if (part.team->rank() != 0) read(part.team->member(0).board);
    }
  }

  // Every rank reads the boards of all others.
  void go_flat() {
    for (Part& part : comms_.back()) publish(*part.team, part.team->board());
    for (Part& part : comms_.back()) {
      for (int r = 0; r < ranks_; ++r) {
        if (r != part.team->rank()) read(part.team->member(r).board);
      }
    }
  }

  [[nodiscard]] std::size_t bytes() const {
    std::size_t all = 0;
    for (const Segment& segment : segments_) {
      struct stat file;
      EXPECT_EQ(fstat(segment.descriptor(), &file), 0);
      all += static_cast<std::size_t>(file.st_blocks) * 512;
    }
    return all;
  }

 private:
  static std::uint64_t instance(int rank) { return 2 * static_cast<std::uint64_t>(rank) + 1; }
  Segment& segment(int rank) { return segments_[static_cast<std::size_t>(rank)]; }
  char* make_block(int rank, std::size_t bytes) {
    const std::uint64_t offset = segment(rank).block_allocate(bytes);
    EXPECT_NE(offset, 0u);
    return segment(rank).base() + offset;
  }
  void connect(std::vector<Part>& comm, int rank) {
    Part& part = comm[static_cast<std::size_t>(rank)];
    for (int r = 0; r < ranks_; ++r) {
      if (r != rank)
        part.team->connect(r, {segment(r).base(), comm[static_cast<std::size_t>(r)].block, instance(r), 0});
    }
    for (int t = 0; t < part.groups.count(); ++t) {
      const topo::Group& group = part.groups[t];
      Team* const team = part.team->create_tier(group.index, group.members.data(), group.size(), part.tier_blocks[t]);
      part.tiers[t] = team;
      team->settle_tier();
      for (int m = 0; m < group.size(); ++m)
        team->connect_tier(m,
                           comm[static_cast<std::size_t>(group.members[static_cast<std::size_t>(m)])].tier_blocks[t]);
    }
  }
  template <class Visit>
  static void each_tier(std::vector<Part>& comm, int tier, Visit visit) {
    for (Part& part : comm) {
      if (tier < part.groups.count()) visit(part, tier);
    }
  }
  static void publish(Team& team, OutQueue& queue) {
    Record* const record = team.queues().claim(queue);
    ASSERT_NE(record, nullptr);
    Queues::publish(queue, record);
  }
  static void read(InQueue& queue) {
    ASSERT_NE(queue.peek(), nullptr);
    queue.consume();
  }

  int ranks_;
  std::vector<Segment> segments_;
  std::vector<std::unique_ptr<Lanes>> lanes_;
  std::vector<std::vector<Part>> comms_;
};

// Of a communicator, where several share pages.
template <class Use>
std::size_t bytes_of_a_communicator(int ranks, Use use) {
  constexpr int kComms = 16;
  Node node(ranks);
  const std::size_t before = node.bytes();
  for (int i = 0; i < kComms; ++i) {
    node.make_comm();
    use(node);
  }
  return (node.bytes() - before) / kComms;
}

// Beside its directories: that of the communicator, and those of two sockets.
constexpr std::size_t kMost = std::size_t{25} << 7;

// Blocks of a hundred communicators lie together, so a peer that looks at all of them needs few
// page tables: places lie apart.
TEST(CommunicatorMemory, BlocksOfManyCommunicatorsLieTogether) {
  constexpr int kComms = 100;
  const BlockLayout layout{64};
  Segment segment;
  ASSERT_EQ(segment.create(256 * kMiB, kLanesBytes), Status::ok);
  std::uint64_t first = 0, last = 0;
  for (int i = 0; i < kComms; ++i) {
    last = segment.block_allocate(layout.bytes());
    if (i == 0) first = last;
    ASSERT_NE(segment.place_allocate(layout.place_bytes()), 0u);
  }
  EXPECT_LT(last - first, kMiB);
  // And peers map all this once.
  EXPECT_LE(segment.extent(), Segment::least_extent(kLanesBytes) + 32 * kMiB);
  segment.destroy();
}

// Nothing but directories grows with the square of the ranks.
TEST(CommunicatorMemory, GrowsWithTheRanksWhereCallsGoByTiers) {
  const auto by_tiers = [](int ranks) {
    return bytes_of_a_communicator(ranks, [](Node& node) { node.go_by_tiers(); });
  };
  for (const int ranks : {32, 64, 128})
    EXPECT_LT(by_tiers(ranks), ranks * kMost + ranks * ranks * 2 * sizeof(std::uint32_t)) << ranks;
  EXPECT_LT(100 * by_tiers(128), 64 * kMiB);
}

// A line and a ring for each rank, and rank 0's lines for all others.
TEST(CommunicatorMemory, GrowsWithTheRanksWhereCallsGoByOneOfThem) {
  const auto by_root = [](int ranks) { return bytes_of_a_communicator(ranks, [](Node& node) { node.go_by_root(); }); };
  for (const int ranks : {16, 32, 64, 128}) {
    const std::size_t lines = (static_cast<std::size_t>(ranks) * sizeof(Ack) + 8191) / 4096 * 4096;
    EXPECT_LT(by_root(ranks), ranks * kMost + ranks * ranks * 2 * sizeof(std::uint32_t) + lines) << ranks;
  }
}

TEST(CommunicatorMemory, IsLittleBeforeTheFirstCall) {
  const auto unused = [](int ranks) { return bytes_of_a_communicator(ranks, [](Node&) {}); };
  EXPECT_LT(unused(128), 128 * kMost);
  EXPECT_LT(unused(8), 8 * (std::size_t{8} << 10));
}

// An ack line for each pair that has read something.
TEST(CommunicatorMemory, GrowsWithThePairsThatReadEachOther) {
  constexpr std::size_t kRanks = 64, kPages = 2 * kRanks * 4096;
  const std::size_t flat = bytes_of_a_communicator(kRanks, [](Node& node) { node.go_flat(); });
  EXPECT_GT(flat, kRanks * (kRanks - 1) * sizeof(Ack));
  EXPECT_LT(flat, kRanks * (kRanks * sizeof(Ack) + (std::size_t{11} << 8)) + kPages);
}

}  // namespace
}  // namespace stretto::shm
