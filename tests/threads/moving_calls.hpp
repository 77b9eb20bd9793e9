// SPDX-License-Identifier: BSD-3-Clause
// Random calls that move data, judged by a serial oracle. Every byte that a rank sends is a hash of
// (case, source rank, destination rank, position). Every byte that must not change is watched.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "threads/job.hpp"

namespace stretto::test::moving {

using engine::Comm;

inline unsigned char expected_byte(std::uint64_t seed, int source, int block, std::uint64_t position) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + source * 0xbf58476d1ce4e5b9u + block * 0x94d049bb133111ebu + position;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9u;
  return static_cast<unsigned char>(x >> 56);
}

inline constexpr unsigned char kCanary = 0xa5;

// Layouts of one element, each with 12 bytes of data. So ranks may use different layouts for one
// message.
struct LayoutBox {
  std::vector<Run> runs;
  Layout layout;
};
inline const LayoutBox& layout_box(unsigned which) {
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
inline Layout layout_of(unsigned which) {
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

inline std::vector<std::int32_t> spread(const std::vector<std::int32_t>& counts, unsigned gap, bool reverse) {
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

}  // namespace stretto::test::moving
