// SPDX-License-Identifier: BSD-3-Clause
// What ranks of a job tell each other at MPI_Init: each node's record once.
#include <gtest/gtest.h>

#include <vector>

#include "topo/records.hpp"

namespace stretto::test {
namespace {

struct Record {
  std::uint64_t what;
  char name[120];
};
Record record(int what) {
  Record made{};
  made.what = static_cast<std::uint64_t>(what);
  return made;
}

// All other ranks of one rank under test. `records` are what they have to tell.
struct Others {
  std::vector<Record> records;
  std::vector<std::uint64_t> hashes;
  std::size_t received = 0;
  bool lies = false;

  static std::uint64_t hash_of(const Record& mine) {
    std::uint64_t hash = 0;
    topo::Records<Record> alone;
    EXPECT_TRUE(alone.gather({{0, 1, &hash,
                               [](void* to, const void* own, void* all, std::size_t bytes) {
                                 std::memcpy(to, own, bytes);
                                 std::memcpy(all, own, bytes);
                                 return true;
                               }},
                              [](void*, const int*, int, const void* own, void* all, std::size_t bytes) {
                                std::memcpy(all, own, bytes);
                                return true;
                              }},
                             mine));
    return hash;
  }
  explicit Others(std::vector<Record> all) : records(std::move(all)) {
    for (const Record& one : records) hashes.push_back(hash_of(one));
  }
  topo::RecordExchange exchange(int rank) {
    return {{rank, static_cast<int>(records.size()), this,
             [](void* context, const void*, void* all, std::size_t bytes) {
               Others& others = *static_cast<Others*>(context);
               EXPECT_EQ(bytes, sizeof(std::uint64_t));
               std::memcpy(all, others.hashes.data(), bytes * others.hashes.size());
               others.received += bytes * others.hashes.size();
               return true;
             }},
            [](void* context, const int* tellers, int count, const void*, void* all, std::size_t bytes) {
              Others& others = *static_cast<Others*>(context);
              for (int i = 0; i < count; ++i) {
                Record told = others.records[static_cast<std::size_t>(tellers[i])];
                if (others.lies) told.name[3] = 'x';
                std::memcpy(static_cast<char*>(all) + static_cast<std::size_t>(i) * bytes, &told, bytes);
              }
              others.received += static_cast<std::size_t>(count) * bytes;
              return true;
            }};
  }
};

TEST(Records, EveryRankFindsItsOwn) {
  Others others({record(7), record(3), record(7), record(9), record(3)});
  for (int rank = 0; rank < 5; ++rank) {
    topo::Records<Record> records;
    ASSERT_TRUE(records.gather(others.exchange(rank), others.records[static_cast<std::size_t>(rank)]));
    EXPECT_EQ(records.count(), 3);
    for (int r = 0; r < 5; ++r) EXPECT_EQ(records.of(r).what, others.records[static_cast<std::size_t>(r)].what);
  }
}

// A record goes once for each node, however many ranks it has; 8 bytes go for each rank.
TEST(Records, BytesGrowWithNodes) {
  constexpr int kNodes = 1024, kEach = 128;
  std::vector<Record> all;
  for (int r = 0; r < kNodes * kEach; ++r) all.push_back(record(r / kEach));
  Others others(std::move(all));
  topo::Records<Record> records;
  ASSERT_TRUE(records.gather(others.exchange(500), others.records[500]));
  EXPECT_EQ(records.count(), kNodes);
  EXPECT_EQ(records.of(kNodes * kEach - 1).what, static_cast<std::uint64_t>(kNodes - 1));
  EXPECT_EQ(others.received, kNodes * kEach * sizeof(std::uint64_t) + kNodes * sizeof(Record));
}

// As if the hashes of two records were alike.
TEST(Records, ARankWhoseRecordWasNotToldSaysSo) {
  Others others({record(1), record(2)});
  others.lies = true;
  topo::Records<Record> records;
  EXPECT_FALSE(records.gather(others.exchange(1), others.records[1]));
}

}  // namespace
}  // namespace stretto::test
