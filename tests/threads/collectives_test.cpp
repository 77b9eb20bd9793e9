// SPDX-License-Identifier: BSD-3-Clause
// Random calls on jobs of 1 to 16 ranks as threads, judged by a serial oracle. Every byte that a
// rank sends is a hash of (case, source rank, destination rank, position). Every byte that must not
// change is watched.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "threads/job.hpp"

namespace stretto::test {
namespace {

using engine::Comm;

unsigned char expected_byte(std::uint64_t seed, int source, int block, std::uint64_t position) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + source * 0xbf58476d1ce4e5b9u + block * 0x94d049bb133111ebu + position;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return static_cast<unsigned char>(x >> 56);
}

constexpr unsigned char kCanary = 0xa5;

// Layouts of one element, each with 12 bytes of data. So ranks may use different layouts for one
// message.
struct LayoutBox {
  std::vector<Run> runs;
  Layout layout;
};
const LayoutBox& layout_box(unsigned which) {
  static const std::array<LayoutBox, 4> boxes = [] {
    std::array<LayoutBox, 4> b;
    b[0].runs = {{0, 12}};
    b[0].layout = {12, 12, nullptr, 1, true};
    b[1].runs = {{0, 4}, {8, 8}};
    b[1].layout = {12, 24, nullptr, 2, false};
    b[2].runs = {{16, 5}, {3, 7}};
    b[2].layout = {12, 29, nullptr, 2, false};
    b[3].runs = {{1, 12}};
    b[3].layout = {12, 16, nullptr, 1, false};
    return b;
  }();
  return boxes[which % 4];
}
Layout layout_of(unsigned which) {
  Layout layout = layout_box(which).layout;
  layout.runs = layout_box(which).runs.data();
  return layout;
}

// A rank's memory for `blocks` blocks at given displacements, with canaries everywhere else.
class Memory {
 public:
  Memory(Layout layout, std::vector<std::int32_t> counts, std::vector<std::int32_t> displs)
      : layout_(layout), counts_(std::move(counts)), displs_(std::move(displs)) {
    std::int64_t top = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) top = std::max<std::int64_t>(top, displs_[b] + counts_[b] + 1);
    bytes_.assign(static_cast<std::size_t>(top * layout.extent + 64), kCanary);
  }
  [[nodiscard]] Blocks blocks() { return {base(), &layout_, 0, counts_.data(), displs_.data(), false}; }
  [[nodiscard]] Region block(int b) { return blocks().at(b); }
  void fill(int b, std::uint64_t seed, int source, int name) {
    each_byte(b, [&](unsigned char& byte, std::uint64_t i) { byte = expected_byte(seed, source, name, i); });
  }
  // The first `bytes` bytes of block b are as expected. Marks them as checked.
  void check(int b, std::uint64_t bytes, std::uint64_t seed, int source, int name) {
    std::uint64_t wrong = 0;
    each_byte(b, [&](unsigned char& byte, std::uint64_t i) {
      if (i >= bytes) return;
      wrong += byte != expected_byte(seed, source, name, i);
      byte = kCanary;
    });
    EXPECT_EQ(wrong, 0u) << "seed " << seed << " block " << b << " from " << source << ", " << bytes << " bytes";
  }
  // No byte has changed but those that were checked.
  void check_rest(std::uint64_t seed) {
    const auto touched = std::count_if(bytes_.begin(), bytes_.end(), [](unsigned char c) { return c != kCanary; });
    EXPECT_EQ(touched, 0) << "seed " << seed << ": bytes outside the message were written";
  }

 private:
  char* base() { return reinterpret_cast<char*>(bytes_.data()) + 16; }
  void each_byte(int b, const std::function<void(unsigned char&, std::uint64_t)>& visit) {
    std::uint64_t position = 0;
    for (std::int32_t e = 0; e < counts_[b]; ++e) {
      for (std::size_t r = 0; r < layout_.run_count; ++r) {
        char* run = base() + (displs_[b] + e) * layout_.extent + layout_.runs[r].offset;
        for (std::size_t i = 0; i < layout_.runs[r].bytes; ++i) {
          visit(reinterpret_cast<unsigned char&>(run[i]), position++);
        }
      }
    }
  }
  Layout layout_;
  std::vector<std::int32_t> counts_;
  std::vector<std::int32_t> displs_;
  std::vector<unsigned char> bytes_;
};

// What all ranks know of a case. It is derived from the seed alone.
struct Case {
  Collective collective;
  int root;
  std::vector<std::int32_t> counts;   // elements of 12 bytes, per rank
  std::vector<unsigned> layouts;      // per rank
  std::vector<std::int32_t> surplus;  // receive counts exceed what is sent by so much
  bool in_place;
  int sleeper;

  Case(std::uint64_t seed, int size, std::size_t ring_bytes) {
    std::mt19937_64 random(seed);
    static constexpr Collective kAll[] = {Collective::barrier, Collective::bcast, Collective::gatherv,
                                          Collective::scatterv, Collective::allgatherv};
    collective = kAll[random() % std::size(kAll)];
    root = static_cast<int>(random() % size);
    in_place = random() % 3 == 0;
    sleeper = random() % 8 == 0 ? static_cast<int>(random() % size) : -1;
    const auto ring = static_cast<std::int32_t>(ring_bytes / 12);
    const std::int32_t sizes[] = {
        0, 1, 7, 8, 9, ring / 8, ring, 3 * ring, static_cast<std::int32_t>(random() % (ring + 1))};
    const bool regular = random() % 3 == 0;
    const auto first = sizes[random() % std::size(sizes)];
    for (int r = 0; r < size; ++r) {
      counts.push_back(regular ? first : sizes[random() % std::size(sizes)]);
      layouts.push_back(static_cast<unsigned>(random() % 4));
      surplus.push_back(random() % 4 == 0 ? static_cast<std::int32_t>(random() % 5) : 0);
    }
  }
};

std::vector<std::int32_t> spread(const std::vector<std::int32_t>& counts, unsigned gap, bool reverse) {
  std::vector<std::int32_t> displs(counts.size());
  std::int32_t next = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::size_t b = reverse ? counts.size() - 1 - i : i;
    displs[b] = next;
    next += counts[b] + static_cast<std::int32_t>(gap);
  }
  return displs;
}

class Player {
 public:
  Player(Comm& comm, std::uint64_t seed, std::size_t ring_bytes)
      : comm_(comm),
        seed_(seed),
        rank_(comm_rank(comm)),
        size_(comm_size(comm)),
        c_(seed, size_, ring_bytes),
        layout_(layout_of(c_.layouts[rank_])) {}

  void play() {
    if (c_.sleeper == rank_) std::this_thread::sleep_for(std::chrono::microseconds(seed_ % 300));
    switch (c_.collective) {
      case Collective::barrier: EXPECT_EQ(barrier(comm_).status, Status::ok); break;
      case Collective::bcast: bcast(); break;
      case Collective::gatherv: gatherv(); break;
      case Collective::scatterv: scatterv(); break;
      default: allgatherv();
    }
  }

 private:
  [[nodiscard]] std::uint64_t bytes(int r) const { return 12u * static_cast<std::uint64_t>(c_.counts[r]); }
  [[nodiscard]] Memory all_blocks(bool with_surplus) const {
    auto counts = c_.counts;
    if (with_surplus) {
      for (int r = 0; r < size_; ++r) counts[r] += c_.surplus[rank_];
    }
    return {layout_, counts, spread(counts, static_cast<unsigned>(seed_ % 3), seed_ % 2 == 0)};
  }

  void bcast() {
    const int n = c_.counts[c_.root];
    Memory buffer(layout_, {rank_ == c_.root ? n : n + c_.surplus[rank_]}, {1});
    if (rank_ == c_.root) buffer.fill(0, seed_, c_.root, 0);
    EXPECT_EQ(engine::bcast(comm_, buffer.block(0), c_.root, true).status, Status::ok);
    buffer.check(0, bytes(c_.root), seed_, c_.root, 0);
    buffer.check_rest(seed_);
  }

  void gatherv() {
    const bool mine_in_place = c_.in_place && rank_ == c_.root;
    Memory send(layout_, {c_.counts[rank_]}, {0});
    send.fill(0, seed_, rank_, 0);
    Memory receive = all_blocks(true);
    if (mine_in_place) receive.fill(rank_, seed_, rank_, 0);
    const auto out = engine::gather(comm_, Collective::gatherv, send.block(0),
                                    rank_ == c_.root ? receive.blocks() : Blocks{}, c_.root, mine_in_place, true);
    EXPECT_EQ(out.status, Status::ok);
    if (rank_ != c_.root) return receive.check_rest(seed_);
    for (int r = 0; r < size_; ++r) receive.check(r, mine_in_place && r == rank_ ? ~0ull : bytes(r), seed_, r, 0);
    receive.check_rest(seed_);
  }

  void scatterv() {
    const bool mine_in_place = c_.in_place && rank_ == c_.root;
    Memory send = all_blocks(false);
    for (int r = 0; r < size_; ++r) send.fill(r, seed_, c_.root, r);
    Memory receive(layout_, {c_.counts[rank_] + c_.surplus[rank_]}, {2});
    const auto out = engine::scatter(comm_, Collective::scatterv, rank_ == c_.root ? send.blocks() : Blocks{},
                                     mine_in_place ? Region{} : receive.block(0), c_.root, mine_in_place, true);
    EXPECT_EQ(out.status, Status::ok);
    if (!mine_in_place) receive.check(0, bytes(rank_), seed_, c_.root, rank_);
    receive.check_rest(seed_);
  }

  void allgatherv() {
    Memory send(layout_, {c_.counts[rank_]}, {0});
    send.fill(0, seed_, rank_, 0);
    Memory receive = all_blocks(!c_.in_place);
    if (c_.in_place) receive.fill(rank_, seed_, rank_, 0);
    const auto out =
        engine::allgather(comm_, Collective::allgatherv, send.block(0), receive.blocks(), c_.in_place, true);
    EXPECT_EQ(out.status, Status::ok);
    for (int r = 0; r < size_; ++r) receive.check(r, bytes(r), seed_, r, 0);
    receive.check_rest(seed_);
  }

  Comm& comm_;
  std::uint64_t seed_;
  int rank_;
  int size_;
  Case c_;
  Layout layout_;
};

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, AgreeWithASerialOracle) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slot_bytes = 4096;
  Group world(everybody(size));
  const int cases = (size > 8 ? 8 : size > 5 ? 20 : 60) * kEffort;
  const struct {
    std::size_t slots;
    SingleCopyChoice single_copy;
    StreamingChoice streaming;
  } ways[] = {{4, SingleCopyChoice::off, StreamingChoice::off},
              {4, SingleCopyChoice::always, StreamingChoice::automatic},
              {1, SingleCopyChoice::off, StreamingChoice::always}};
  for (const auto& way : ways) {
    settings.slots = way.slots;
    settings.single_copy = way.single_copy;
    settings.streaming = way.streaming;
    const std::size_t ring = settings.slots * settings.slot_bytes;
    run_job(size, settings, [&](int rank, engine::Process& process) {
      Comm* comm = make_comm(process, world, rank);
      ASSERT_NE(comm, nullptr);
      for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) Player(*comm, 1000u * size + i, ring).play();
      engine::comm_free(comm);
    });
  }
}

// Communicators come and go without synchronising. Several live at once, over different members in
// different orders.
TEST_P(Collectives, OnCommunicatorsMadeAndFreedInALoop) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group world(everybody(size));
  std::vector<int> backwards(size);
  for (int r = 0; r < size; ++r) backwards[r] = size - 1 - r;
  Group reversed(backwards);
  std::vector<int> lower;
  std::vector<int> upper;
  for (int r = 0; r < size; ++r) (r % 2 == 0 ? lower : upper).push_back(r);
  Group evens(lower);
  Group odds(upper);
  run_job(size, settings, [&](int rank, engine::Process& process) {
    Comm* kept = make_comm(process, world, rank);
    const int rounds = (size > 8 ? 3 : size > 4 ? 5 : 10) * kEffort;
    for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
      Comm* turned = make_comm(process, reversed, reversed.rank_of(rank));
      Group& half = rank % 2 == 0 ? evens : odds;
      Comm* part = make_comm(process, half, half.rank_of(rank));
      ASSERT_TRUE(kept && turned && part);
      for (int i = 0; i < 4; ++i) {
        Player(*turned, 77u * round + i, 8192).play();
        Player(*part, 99u * round + i, 8192).play();
        Player(*kept, 55u * round + i, 8192).play();
      }
      engine::comm_free(turned);
      engine::comm_free(part);
    }
    engine::comm_free(kept);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 5, 7, 8, 16));

TEST(Errors, TruncationIsSufferedByTheShortRankAlone) {
  Group world(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    for (std::uint64_t length : {std::uint64_t{50}, std::uint64_t{100'000}}) {
      std::vector<char> buffer(length + 1, static_cast<char>(rank == 0 ? 7 : 0));
      const std::uint64_t mine = rank == 2 ? length - 1 : length;
      const auto out = engine::bcast(*comm, {buffer.data(), mine, &kBytes}, 0, true);
      EXPECT_EQ(out.status, rank == 2 ? Status::truncated : Status::ok);
      EXPECT_EQ(buffer[mine - 1], 7);
      EXPECT_EQ(buffer[length], rank == 0 ? 7 : 0);
      EXPECT_EQ(buffer[length - 1], rank == 2 ? 0 : 7);
    }
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

TEST(Errors, BadArgumentsOnOneRankFailItsPeersAndTheNextCallIsRight) {
  Group world(everybody(3));
  run_job(3, {}, [&](int rank, engine::Process& process) {
    Comm* comm = make_comm(process, world, rank);
    std::vector<char> buffer(200, static_cast<char>(rank));
    const Region mine{buffer.data(), 200, &kBytes};
    // The root's fault reaches all ranks. Another rank's fault stays with it.
    EXPECT_EQ(engine::bcast(*comm, mine, 1, rank != 1).status, rank == 1 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::bcast(*comm, mine, 1, rank != 2).status, Status::ok);
    std::vector<char> all(600);
    const Blocks blocks{all.data(), &kBytes, 200};
    const auto gathered = engine::gather(*comm, Collective::gather, mine, blocks, 0, false, rank != 2).status;
    EXPECT_EQ(gathered, rank == 0 ? Status::peer_failed : Status::ok);
    const auto shared = engine::allgather(*comm, Collective::allgather, mine, blocks, false, rank != 2).status;
    EXPECT_EQ(shared, rank == 2 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::scatter(*comm, Collective::scatter, blocks, mine, 2, false, rank != 2).status,
              rank == 2 ? Status::ok : Status::peer_failed);
    EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
    engine::comm_free(comm);
  });
}

// "Thread 1: Bcast X; thread 2: Bcast Y" against "Bcast Y, then X" is correct MPI. Data of X in
// slots must not hold up Y.
TEST(Threads, CallsOfSeveralThreadsDoNotWaitForEachOthersSlots) {
  engine::Settings settings;
  settings.slots = 2;
  settings.slot_bytes = 4096;
  Group x(everybody(2));
  Group y(everybody(2));
  run_job(2, settings, [&](int rank, engine::Process& process) {
    Comm* comm_x = make_comm(process, x, rank);
    Comm* comm_y = make_comm(process, y, rank);
    std::vector<char> buffer(8192, static_cast<char>(rank));
    std::vector<char> other(64 << 10, static_cast<char>(rank));
    const Region small{buffer.data(), buffer.size(), &kBytes};
    const Region large{other.data(), other.size(), &kBytes};
    for (int i = 0; i < 20 * kEffort; ++i) {
      if (rank == 0) {
        std::jthread([&] { EXPECT_EQ(engine::bcast(*comm_x, small, 0, true).status, Status::ok); }).join();
        std::jthread([&] { EXPECT_EQ(engine::bcast(*comm_y, large, 0, true).status, Status::ok); }).join();
      } else {
        EXPECT_EQ(engine::bcast(*comm_y, large, 0, true).status, Status::ok);
        EXPECT_EQ(engine::bcast(*comm_x, small, 0, true).status, Status::ok);
      }
    }
    engine::comm_free(comm_x);
    engine::comm_free(comm_y);
  });
}

}  // namespace
}  // namespace stretto::test
