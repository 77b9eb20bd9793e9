// SPDX-License-Identifier: BSD-3-Clause
// Segments, lanes and acks, without a job around them.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "shm/lane.hpp"
#include "shm/message.hpp"
#include "shm/segment.hpp"
#include "shm/team.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct OwnSegment : Segment {
  explicit OwnSegment(std::size_t bytes, std::size_t lanes = 4096) { EXPECT_EQ(create(bytes, lanes), Status::ok); }
  ~OwnSegment() { destroy(); }
};

TEST(Segment, GivesBlocksThatDoNotOverlapAndTakesThemBack) {
  OwnSegment segment(4 * kMiB);
  std::vector<std::uint64_t> offsets;
  for (int i = 0; i < 50; ++i) {
    const auto offset = segment.block_allocate(3000);
    ASSERT_NE(offset, 0u);
    std::memset(segment.base() + offset, i, 3000);
    offsets.push_back(offset);
  }
  for (int i = 0; i < 50; ++i) {
    const char* block = segment.base() + offsets[i];
    EXPECT_EQ(std::count(block, block + 3000, static_cast<char>(i)), 3000) << "block " << i << " was written over";
  }
  for (const auto offset : offsets) segment.block_release(offset, 3000);
  std::vector<std::uint64_t> again;
  for (int i = 0; i < 50; ++i) again.push_back(segment.block_allocate(3000));
  std::sort(offsets.begin(), offsets.end());
  std::sort(again.begin(), again.end());
  EXPECT_EQ(again, offsets);
}

// This includes blocks of control lines for powers of two, which are a little longer than a power
// of two.
TEST(Segment, BlocksWasteLittleAndKeepApart) {
  OwnSegment segment(64 * kMiB);
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = 1; bytes < 40'000; bytes += 61) sizes.push_back(bytes);
  for (unsigned ranks : {2u, 16u, 32u, 64u, 128u, 256u}) sizes.push_back(BlockLayout{ranks}.bytes());
  for (const std::size_t bytes : sizes) {
    const auto first = segment.block_allocate(bytes);
    const auto second = segment.block_allocate(bytes);
    ASSERT_TRUE(first != 0 && second != 0) << bytes;
    EXPECT_EQ(first % kLineBytes, 0u);
    EXPECT_GE(second - first, bytes);
    EXPECT_LT(static_cast<double>(second - first), static_cast<double>(bytes) * 1.0625 + kLineBytes) << bytes;
  }
  for (const std::size_t bytes : sizes) {
    const auto block = segment.block_allocate(bytes);
    segment.block_release(block, bytes);
    EXPECT_EQ(segment.block_allocate(bytes), block) << bytes;
    segment.block_release(block, bytes);
  }
}

TEST(Segment, SaysWhenItIsFullAndGoesOnAfterARelease) {
  OwnSegment segment(256 << 10);
  std::vector<std::uint64_t> offsets;
  while (const auto offset = segment.block_allocate(20'000)) offsets.push_back(offset);
  EXPECT_GT(offsets.size(), 3u);
  EXPECT_LT(offsets.size(), 13u);
  segment.block_release(offsets.back(), 20'000);
  EXPECT_EQ(segment.block_allocate(20'000), offsets.back());
}

TEST(Segment, IsAttachedOnlyAsWhatItWasAnnounced) {
  OwnSegment segment(kMiB);
  Attachment attachment;
  EXPECT_EQ(attachment_map(dup(segment.descriptor()), kMiB, segment.identity() + 1, &attachment), Status::unavailable);
  ASSERT_EQ(attachment_map(dup(segment.descriptor()), kMiB, segment.identity(), &attachment), Status::ok);
  segment.base()[5000] = 42;
  EXPECT_EQ(attachment.base[5000], 42);
  attachment_unmap(&attachment);
  EXPECT_EQ(attachment.base, nullptr);
}

TEST(Segment, PeersMapMoreOfItAsItFills) {
  OwnSegment segment(64 * kMiB);
  const std::size_t first = segment.extent();
  EXPECT_GE(first, Segment::least_extent(4096));
  EXPECT_LT(first, 64 * kMiB);
  Attachment shorter, longer;
  ASSERT_EQ(attachment_map(dup(segment.descriptor()), first, segment.identity(), &shorter), Status::ok);
  EXPECT_TRUE(shorter.covers(first));
  std::uint64_t offset = 0;
  while (segment.extent() == first) ASSERT_NE(offset = segment.block_allocate(100'000), 0u);
  EXPECT_LE(offset + 100'000, segment.extent());
  EXPECT_EQ(shorter.bytes != 0, !shorter.covers(segment.extent()));
  ASSERT_EQ(attachment_extend(shorter, segment.extent(), &longer), Status::ok);
  segment.base()[offset] = 42;
  segment.base()[5000] = 43;
  EXPECT_EQ(longer.base[offset], 42);
  EXPECT_EQ(longer.base[5000], 43);
  EXPECT_EQ(shorter.base[5000], 43) << "the first mapping stays";
  EXPECT_FALSE(longer.used);
  attachment_unmap(&shorter);
  EXPECT_EQ(longer.base[5000], 43);
  attachment_unmap(&longer);
}

// Places have addresses only. Blocks lie close together all the same.
TEST(Segment, APlaceHasNoMemoryUntilItIsBacked) {
  OwnSegment segment(32 * kMiB);
  const auto backed = [&] {
    struct stat file;
    EXPECT_EQ(fstat(segment.descriptor(), &file), 0);
    return file.st_blocks * 512 / 4096;
  };
  const auto first = segment.block_allocate(1024);
  const auto none = backed();
  const auto place = segment.place_allocate(2 * kMiB);
  EXPECT_EQ(backed(), none);
  const auto second = segment.block_allocate(1024);
  ASSERT_TRUE(first != 0 && place != 0 && second != 0);
  EXPECT_EQ(second - first, 1024u);
  const auto before = backed();
  EXPECT_TRUE(segment.back(place + 5 * 4096 + 100, 1024));
  EXPECT_EQ(backed(), before + 1);
  segment.place_release(place, 2 * kMiB);
  EXPECT_EQ(segment.place_allocate(2 * kMiB), place);
  EXPECT_NE(segment.place_allocate(2 * kMiB), place);
}

TEST(Segment, ExtentEndsWithTheSegment) {
  OwnSegment segment(256 << 10);
  EXPECT_EQ(segment.extent(), std::size_t{256} << 10);
}

// Two members of a team, both in this thread.
class TeamTest : public testing::Test {
 protected:
  static constexpr std::size_t kBlock = BlockLayout{2}.bytes();

  void SetUp() override {
    lanes_.init(&segment_, 2, 4096, 0);
    ASSERT_TRUE(lanes_.open_first());
    for (int r = 0; r < 2; ++r) {
      block_[r] = segment_.base() + segment_.block_allocate(kBlock);
      team_[r] = Team::create(r, 2, 77 + 2 * r, block_[r], lanes_.team_memory());
      team_[r]->settle(75, {}, {4096, 4096});
    }
    for (int r = 0; r < 2; ++r)
      team_[r]->connect(1 - r, {segment_.base(), block_[1 - r], 77 + 2 * (1 - std::uint64_t(r)), 0});
  }
  void TearDown() override {
    for (auto* team : team_) Team::destroy(team);
  }
  // Rank 0 publishes an empty record on its board.
  bool publish() {
    Record* record = team_[0]->queues().claim(team_[0]->board());
    if (record) Queues::publish(team_[0]->board(), record);
    return record != nullptr;
  }
  bool read() {
    InQueue& queue = team_[1]->member(0).board;
    if (!queue.peek()) return false;
    queue.consume();
    return true;
  }

  static constexpr unsigned kRecords = queue_records(2);
  OwnSegment segment_{4 * kMiB, Lanes::area_bytes(2, 4096)};
  Lanes lanes_{kMessageStates};
  char* block_[2];
  Team* team_[2]{};
};

TEST_F(TeamTest, ARecordIsNotWrittenOverBeforeItWasRead) {
  for (unsigned i = 0; i < kRecords; ++i) EXPECT_TRUE(publish());
  EXPECT_FALSE(publish());
  EXPECT_TRUE(read());
  EXPECT_TRUE(publish());
  EXPECT_FALSE(publish());
  for (unsigned i = 0; i < kRecords; ++i) EXPECT_TRUE(read());
  EXPECT_FALSE(read());
}

TEST_F(TeamTest, IsDrainedWhenAllIsRead) {
  EXPECT_TRUE(team_[1]->drained());
  publish();
  publish();
  EXPECT_FALSE(team_[0]->drained());
  read();
  EXPECT_FALSE(team_[0]->drained());
  read();
  EXPECT_TRUE(team_[0]->drained());
}

// The reader has read all and left. Its block belongs to another communicator now, whose counters
// are lower.
TEST_F(TeamTest, AReaderThatHasLeftHasReadAll) {
  publish();
  publish();
  read();
  read();
  Team::destroy(team_[1]);
  team_[1] = Team::create(1, 2, 81, block_[1], lanes_.team_memory());
  EXPECT_EQ(team_[0]->queues().refresh(team_[0]->board()), 2u);
  EXPECT_TRUE(team_[0]->drained());
}

// Several measurements in a row change the writer's mind, and more of them change it back to near.
// A line out of its own cache says nothing.
TEST(Distance, MeasurementsInARowDecide) {
  constexpr std::uint64_t kFar = 100, kOwn = kTuning.own_cache_ns - 1;
  Distance distance;
  const auto after = [&](unsigned times, std::uint64_t ns) {
    for (unsigned i = 0; i < times; ++i) distance.took(ns, kFar);
    return distance.is_far();
  };
  EXPECT_FALSE(distance.is_far());
  EXPECT_FALSE(after(kTuning.far_in_a_row - 1, kFar));
  EXPECT_FALSE(after(1, kFar - 1));
  EXPECT_FALSE(after(kTuning.far_in_a_row - 1, kFar));
  EXPECT_FALSE(after(9, kOwn));
  EXPECT_TRUE(after(1, 10 * kFar));
  EXPECT_TRUE(after(kTuning.near_in_a_row - 1, kFar - 1));
  EXPECT_TRUE(after(1, kFar));
  EXPECT_TRUE(after(kTuning.near_in_a_row - 1, kFar - 1));
  EXPECT_FALSE(after(1, kFar - 1));
}

// Every line is farther than no time at all, and nearer than for ever. An unmeasured line is near.
TEST_F(TeamTest, AsksAReaderNowAndThenHowFarItIs) {
  OutQueue& board = team_[0]->board();
  const auto many_records = [&] {
    for (unsigned i = 0; i < 4 * kTuning.measured_every; ++i) {
      ASSERT_TRUE(publish());
      ASSERT_TRUE(read());
      team_[0]->queues().refresh(board);
    }
  };
  many_records();
  EXPECT_FALSE(team_[0]->queues().is_far(board));
  EXPECT_EQ(board.measure_at, ~std::uint64_t{0});
  team_[0]->queues().far_from(Tuning::kNever - 1);
  many_records();
  EXPECT_FALSE(team_[0]->queues().is_far(board));
  EXPECT_GT(board.measure_at, 0u);
  const std::uint64_t next = board.measure_at;
  board.measure_at = 0;
  team_[0]->queues().refresh(board);
  EXPECT_EQ(board.measure_at, 0u) << "its reader has written nothing since";
  board.measure_at = next;
  EXPECT_LE(board.measure_at, board.written + kTuning.measured_every);
  team_[0]->queues().far_from(0);
  EXPECT_TRUE(team_[0]->queues().is_far(board));
  EXPECT_TRUE(team_[0]->queues().is_far(team_[0]->to(1)));
}

TEST_F(TeamTest, ASlotIsTakenAgainOnlyWhenItsReaderHasMovedOn) {
  Lane* lane = lanes_.acquire(*team_[0]);
  ASSERT_NE(lane, nullptr);
  Slot first, slot;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(lane->take(*team_[0], 4096, false, &slot));
    if (i == 0) first = slot;
    lane->lease(slot, team_[0], team_[0]->board(), 1);
    publish();
  }
  EXPECT_FALSE(lane->take(*team_[0], 4096, false, &slot));
  EXPECT_TRUE(team_[0]->has_leases());
  read();
  ASSERT_TRUE(lane->take(*team_[0], 4096, false, &slot));
  EXPECT_EQ(slot.data, first.data);
  read();
  EXPECT_TRUE(lane->idle(*team_[0]));
  EXPECT_FALSE(team_[0]->has_leases());
  Lanes::release(lane);
}

// Behind a slot that is to lie apart no slot begins at once, unless the lane is short.
TEST_F(TeamTest, SlotsLieApartInALaneThatHoldsSeveral) {
  constexpr std::size_t kSlot = 4096, kGap = 512, kSlots = 8;
  OwnSegment segment(4 * kMiB, Lanes::area_bytes(kSlots, kSlot));
  Lanes lanes{kMessageStates};
  lanes.init(&segment, kSlots, kSlot, kGap);
  ASSERT_TRUE(lanes.open_first());
  Lane* lane = lanes.acquire(*team_[0]);
  const auto length_of = [&](std::size_t bytes, bool apart) {
    Slot slot;
    EXPECT_TRUE(lane->take(*team_[0], bytes, apart, &slot));
    const char* const first = slot.data;
    lane->lease(slot, team_[0], team_[0]->board(), 1);
    publish();
    read();
    EXPECT_TRUE(lane->take(*team_[0], 64, false, &slot));
    return slot.data - first;
  };
  EXPECT_EQ(length_of(1000, false), 1024);
  EXPECT_EQ(length_of(1000, true), 1024 + static_cast<std::ptrdiff_t>(kGap));
  EXPECT_EQ(length_of(2 * kSlot, true), 2 * static_cast<std::ptrdiff_t>(kSlot));
  Lanes::release(lane);
}

// Slots lie at multiples of a line, whatever their length. All slots that were asked for must fit.
TEST(Lanes, ASlotOfHalvedLinesFits) {
  constexpr std::size_t kSlot = 4096 + 64;
  OwnSegment segment{4 * kMiB, Lanes::area_bytes(1, kSlot)};
  Lanes lanes{kMessageStates};
  lanes.init(&segment, 1, kSlot, 0);
  ASSERT_TRUE(lanes.open_first());
  char* const block = segment.base() + segment.block_allocate(BlockLayout{2}.bytes());
  Team* team = Team::create(0, 2, 77, block, lanes.team_memory());
  team->settle(77, {}, {kSlot, kSlot});
  Lane* const lane = lanes.acquire(*team);
  Slot slot;
  EXPECT_TRUE(lane->take(*team, kSlot, false, &slot));
  Lanes::release(lane);
  Team::destroy(team);
}

// Another thread must not wait for this thread's slow readers, so it gets a lane of its own.
TEST_F(TeamTest, ALaneWithSlotsOnLeaseStaysWithItsThread) {
  Lane* mine = lanes_.acquire(*team_[0]);
  Slot slot;
  ASSERT_TRUE(mine->take(*team_[0], 4096, false, &slot));
  mine->lease(slot, team_[0], team_[0]->board(), 1);
  publish();
  Lanes::release(mine);
  Lane* other = nullptr;
  std::jthread([&] {
    other = lanes_.acquire(*team_[1]);
    if (other) Lanes::release(other);
  }).join();
  EXPECT_NE(other, nullptr);
  EXPECT_NE(other, mine);
  Lane* again = lanes_.acquire(*team_[0]);
  EXPECT_EQ(again, mine);
  Lanes::release(again);
  read();
  EXPECT_TRUE(mine->idle(*team_[0]));
}

}  // namespace
}  // namespace stretto::shm
