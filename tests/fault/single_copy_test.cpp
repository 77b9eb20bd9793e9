// SPDX-License-Identifier: BSD-3-Clause
// The system refuses to read a peer's memory, from the start or from the n-th time on. Every call
// ends with the right bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "sys/fault.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kBytesEach = 70'000;

char content(int source, int target, std::size_t i) { return static_cast<char>(source * 31 + target * 7 + i % 251); }

// A block for each rank, in plain memory.
struct Buffer {
  std::vector<char> bytes = std::vector<char>(kRanks * kBytesEach, '\x5a');

  Blocks blocks() { return {bytes.data(), &kBytes, kBytesEach}; }
  Region block(int r) { return blocks().at(r); }
  void fill(int r, int source, int target) {
    for (std::size_t i = 0; i < kBytesEach; ++i)
      bytes[static_cast<std::size_t>(r) * kBytesEach + i] = content(source, target, i);
  }
  [[nodiscard]] bool holds(int r, int source, int target) const {
    for (std::size_t i = 0; i < kBytesEach; ++i) {
      if (bytes[static_cast<std::size_t>(r) * kBytesEach + i] != content(source, target, i)) return false;
    }
    return true;
  }
};

// Makes one call of each kind that uses single copy, and counts the calls that took that path.
void call_all(engine::Comm& comm, int rank, int root, std::atomic<int>& single) {
  const auto expect = [&](const engine::Outcome& out) {
    EXPECT_EQ(out.status, Status::ok);
    single += out.path == Path::single;
  };
  Buffer mine, theirs;
  mine.fill(0, root, 0);
  if (rank != root) mine.bytes.assign(mine.bytes.size(), 0);
  expect(engine::bcast(comm, mine.block(0), root, true));
  EXPECT_TRUE(mine.holds(0, root, 0));
  for (int r = 0; r < kRanks; ++r) mine.fill(r, rank, r);
  expect(engine::scatter(comm, Collective::scatter, mine.blocks(), theirs.block(0), root, false, true));
  EXPECT_TRUE(theirs.holds(0, root, rank));
  expect(engine::gather(comm, Collective::gather, mine.block(root), theirs.blocks(), root, false, true));
  for (int r = 0; r < kRanks && rank == root; ++r) EXPECT_TRUE(theirs.holds(r, r, root));
  expect(engine::alltoall(comm, Collective::alltoall, mine.blocks(), theirs.blocks(), false, true));
  for (int r = 0; r < kRanks; ++r) EXPECT_TRUE(theirs.holds(r, r, rank));
  mine.fill(0, rank, 1);
  expect(engine::allgather(comm, Collective::allgather, mine.block(0), theirs.blocks(), false, true));
  for (int r = 0; r < kRanks; ++r) EXPECT_TRUE(theirs.holds(r, r, 1));
}

// How many calls of all ranks went by single copy.
int play(SingleCopyChoice choice) {
  std::atomic<int> single{0};
  Group group(everybody(kRanks));
  engine::Settings settings;
  settings.single_copy = choice;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  run_job(kRanks, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    for (int root = 0; root < kRanks; ++root) call_all(*comm, rank, root, single);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
  return single;
}

TEST(SingleCopy, IsTakenWhereItIsAllowed) {
  sys::fault::disarm();
  EXPECT_EQ(play(SingleCopyChoice::always), 5 * kRanks * kRanks);
  EXPECT_EQ(play(SingleCopyChoice::off), 0);
}

TEST(SingleCopy, RefusedFromTheStartIsAgreedByAll) {
  ASSERT_TRUE(sys::fault::arm("peer_memory_read:*:EPERM"));
  EXPECT_EQ(play(SingleCopyChoice::always), 0);
  sys::fault::disarm();
  ASSERT_TRUE(sys::fault::arm("peer_memory_read:2:ENOSYS"));  // refused to one pair of ranks
  EXPECT_EQ(play(SingleCopyChoice::always), 0);
  sys::fault::disarm();
}

TEST(SingleCopy, RefusedOnceLaterTheCallEndsWithoutIt) {
  constexpr int kTrials = kRanks * (kRanks - 1);
  for (int n = kTrials + 1; n < kTrials + 60 && !HasFailure(); ++n) {
    sys::fault::disarm();
    ASSERT_TRUE(sys::fault::arm(("peer_memory_read:" + std::to_string(n) + ":EFAULT").c_str()));
    EXPECT_GT(play(SingleCopyChoice::always), 0);
  }
  sys::fault::disarm();
}

// Two readers of one message are refused. What the sender had sent for the first one counts from
// the beginning again for the second.
TEST(SingleCopy, RefusedTwiceLaterTheCallEndsWithoutIt) {
  constexpr int kTrials = kRanks * (kRanks - 1);
  for (int n = kTrials + 1; n < kTrials + 60 && !HasFailure(); ++n) {
    sys::fault::disarm();
    const auto refusal = [](int nth) { return "peer_memory_read:" + std::to_string(nth) + ":EPERM"; };
    ASSERT_TRUE(sys::fault::arm((refusal(n) + "," + refusal(n + 1) + "," + refusal(n + 2)).c_str()));
    EXPECT_GT(play(SingleCopyChoice::always), 0);
  }
  sys::fault::disarm();
}

// More readers than may read one rank's memory at a time. Each reads several pieces.
TEST(SingleCopy, ManyReadersTakeTurns) {
  constexpr int kMany = 8;
  constexpr std::size_t kLong = (5 << 20) + 3;
  sys::fault::disarm();
  std::atomic<int> single{0};
  Group group(everybody(kMany));
  engine::Settings settings;
  settings.single_copy = SingleCopyChoice::always;
  run_job(kMany, settings, [&](int rank, engine::Process& process) {
    engine::Comm* comm = make_comm(process, group, rank);
    ASSERT_NE(comm, nullptr);
    std::vector<char> data(kLong);
    for (std::size_t i = 0; rank == 2 && i < kLong; ++i) data[i] = content(2, 0, i);
    single += engine::bcast(*comm, {data.data(), kLong, &kBytes}, 2, true).path == Path::single;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kLong; ++i) wrong += data[i] != content(2, 0, i);
    EXPECT_EQ(wrong, 0U);
    engine::comm_free(comm);
  });
  EXPECT_EQ(single, kMany);
}

}  // namespace
}  // namespace stretto::test
