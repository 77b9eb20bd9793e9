// SPDX-License-Identifier: BSD-3-Clause
// Messages that all ranks draw alike, exchanged by their drivers.
#pragma once
#include <algorithm>
#include <random>

#include "threads/drivers.hpp"
#include "threads/job.hpp"

namespace stretto::test {

using bulk::Handle;
using bulk::Key;
using bulk::Range;

inline constexpr std::size_t kMiB = 1 << 20;

inline std::vector<char> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<char>((i * 0x9e3779b97f4a7c15u + seed * 0x2545f4914f6cdd1du) >> 56);
  return data;
}

struct Drawn {
  int from, to;
  Key key;
  std::size_t bytes;
};

// What all ranks draw alike.
inline std::vector<Drawn> drawn(int ranks, std::uint64_t seed, std::size_t most_bytes) {
  constexpr std::size_t kBytes[] = {0, 1, 4096, bulk::kEagerBytes, bulk::kEagerBytes + 1, bulk::kPieceBytes, kMiB};
  std::mt19937_64 random(seed);
  std::vector<Drawn> all;
  for (std::size_t left = most_bytes; left > 0;) {
    const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
    const int to = static_cast<int>(random() % static_cast<unsigned>(ranks));
    if (from == to) continue;
    std::size_t bytes = random() % 2 != 0 ? kBytes[random() % std::size(kBytes)] : random() % (4 * kMiB + 1);
    bytes = std::min(bytes, left);
    // Two communicators, and names that say nothing of the order.
    all.push_back({from, to, {random() % 2, random() % 3, static_cast<std::uint32_t>(all.size())}, bytes});
    left -= std::max<std::size_t>(bytes, 1000);
    left = left > most_bytes ? 0 : left;
  }
  return all;
}

// This rank's messages of a round, posted in an order of its own.
inline void exchange(bulk::Driver& driver, int rank, const std::vector<Drawn>& all, std::uint64_t seed) {
  struct Mine {
    const Drawn* drawn;
    std::vector<char> data;
    Handle handle;
  };
  std::mt19937_64 random(seed * 64 + static_cast<unsigned>(rank));
  std::vector<Mine> mine;
  for (const Drawn& each : all) {
    if (each.from == rank) mine.push_back({&each, pattern(each.bytes, each.key.index), nullptr});
    if (each.to == rank) mine.push_back({&each, std::vector<char>(each.bytes, '-'), nullptr});
  }
  std::shuffle(mine.begin(), mine.end(), random);
  for (Mine& m : mine) {
    if (random() % 8 == 0) sys::nap_ns(random() % 2'000'000);
    const Drawn& each = *m.drawn;
    if (each.from == rank) {
      ASSERT_EQ(driver.post_send(each.to, each.key, m.data.data(), each.bytes, &m.handle), Status::ok);
      continue;
    }
    Range order[3];
    for (Range& range : order) range = {random() % (each.bytes + 1), random() % 200'000};
    ASSERT_EQ(driver.post_recv(
                  each.from, each.key, m.data.data(), each.bytes, &m.handle, {},
                  {order, static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 3), {}}),
              Status::ok);
    Mine& other = mine[random() % mine.size()];
    if (other.handle != nullptr) driver.hurry(other.handle, random() % (4 * kMiB), random() % 100'000);
  }
  for (Mine& m : mine) {
    ASSERT_EQ(wait_for(m.handle), Status::ok);
    if (m.drawn->to == rank) {
      EXPECT_EQ(m.handle->arrived_bytes, m.drawn->bytes);
      EXPECT_TRUE(m.data == pattern(m.drawn->bytes, m.drawn->key.index)) << m.drawn->bytes << " bytes";
    }
    driver.complete(m.handle);
  }
}

// Rounds of messages, whose names come again.
inline void exchange_rounds(DriverJob& job, std::size_t bytes_per_rank) {
  const int ranks = job.ranks();
  Group group(everybody(ranks));
  constexpr int kRounds = 2;
  std::vector<Drawn> rounds[kRounds];
  for (int i = 0; i < kRounds; ++i)
    rounds[i] = drawn(ranks, static_cast<unsigned>(ranks * 10 + i), bytes_per_rank * static_cast<unsigned>(ranks));
  job.run([&](int rank, bulk::Driver& driver) {
    for (int i = 0; i < kRounds; ++i) {
      exchange(driver, rank, rounds[i], static_cast<unsigned>(i));
      int ignored[8];
      group.allgather(rank, &rank, ignored, sizeof rank);
    }
  });
}

}  // namespace stretto::test
