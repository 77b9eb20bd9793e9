// SPDX-License-Identifier: BSD-3-Clause
// Malformed batches from another machine. They are read to the end or refused, and nothing outside
// them is touched.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "kv/commit_batch.hpp"

using namespace stretto::kv;

namespace {

std::string sealed(CommitBatch& batch) {
  std::size_t bytes = 0;
  const char* const data = batch.seal(&bytes);
  return {data, bytes};
}

// Reads from memory of exactly the batch's size, so that ASan sees any access beyond it.
template <class Take>
bool read(const std::string& bytes, Take take) {
  const std::unique_ptr<char[]> exact(new char[bytes.size() + (bytes.empty() ? 1 : 0)]);
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  return batch_read(exact.get(), bytes.size(), take);
}

TEST(KvParcelFuzz, WhatWasPackedIsUnpacked) {
  std::mt19937 random(4711);
  for (int trial = 0; trial < 200; ++trial) {
    CommitBatch batch;
    std::vector<std::pair<std::string, std::string>> packed;
    for (unsigned i = random() % 20; i > 0; --i) {
      packed.emplace_back(std::string(random() % 30 + 1, 'k') + std::to_string(i),
                          std::string(random() % 3 == 0 ? 0 : random() % 5000, 'v'));
      const Value value{packed.back().second.data(), static_cast<std::uint32_t>(packed.back().second.size()),
                        static_cast<std::uint16_t>(i), 0};
      ASSERT_TRUE(batch.add(packed.back().first.c_str(), value));
    }
    std::size_t at = 0;
    ASSERT_TRUE(read(sealed(batch), [&](const char* key, const Value& value) {
      EXPECT_EQ(packed[at].first, key);
      EXPECT_EQ(packed[at].second, std::string(static_cast<const char*>(value.data), value.bytes));
      EXPECT_EQ(value.type, packed.size() - at);
      return ++at <= packed.size();
    }));
    EXPECT_EQ(at, packed.size());
  }
}

TEST(KvParcelFuzz, NonsenseIsReadWithoutHarm) {
  CommitBatch batch;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(batch.add(("key" + std::to_string(i)).c_str(), {"0123456789", 10, 4, 0}));
  const std::string good = sealed(batch);
  std::mt19937_64 random(42);
  int whole = 0, refused = 0;
  for (int trial = 0; trial < 50'000; ++trial) {
    std::string bad = good.substr(0, random() % 4 == 0 ? random() % good.size() : good.size());
    for (std::size_t hits = bad.empty() ? 0 : random() % 4; hits > 0; --hits)
      bad[random() % bad.size()] = static_cast<char>(random() >> random() % 64);
    std::size_t sum = 0;
    const bool all = read(bad, [&](const char* key, const Value& value) {
      sum += std::strlen(key);
      for (std::uint32_t i = 0; i < value.bytes; ++i)
        sum += static_cast<unsigned char>(static_cast<const char*>(value.data)[i]);
      return true;
    });
    EXPECT_LT(sum, good.size() * 255);
    ++(all ? whole : refused);
  }
  EXPECT_GT(whole, 1000);
  EXPECT_GT(refused, 10'000);
}

}  // namespace
