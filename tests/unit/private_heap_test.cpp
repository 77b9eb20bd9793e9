// SPDX-License-Identifier: BSD-3-Clause
#include "base/private_heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/array.hpp"

namespace stretto {
namespace {

TEST(PrivateHeap, BlocksKeepTheirBytes) {
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (std::size_t bytes = 1; bytes < (1 << 20); bytes = bytes * 3 + 1) {
    auto* const at = static_cast<char*>(PrivateHeap::take(bytes));
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
    std::memset(at, static_cast<int>(blocks.size() + 1), bytes);
    blocks.emplace_back(at, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto [at, bytes] = blocks[i];
    for (std::size_t b = 0; b < bytes; b += 97) ASSERT_EQ(at[b], static_cast<char>(i + 1));
    PrivateHeap::release(at, bytes);
  }
}

TEST(PrivateHeap, AFreedBlockIsUsedAgain) {
  void* const first = PrivateHeap::take(1000);
  PrivateHeap::release(first, 1000);
  void* const second = PrivateHeap::take(900);  // of the same size: 1024
  EXPECT_EQ(first, second);
  PrivateHeap::release(second, 900);
  PrivateHeap::release(nullptr, 5);
}

TEST(PrivateHeap, AnArrayGrows) {
  Array<int, PrivateHeap> array;
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(array.push(i));
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(array[i], i);
}

TEST(PrivateHeap, ThreadsDoNotGetTheSameBlock) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = 1 + static_cast<std::size_t>(i * 37 % 5000);
        auto* const at = static_cast<char*>(PrivateHeap::take(bytes));
        std::memset(at, t, bytes);
        std::this_thread::yield();
        ASSERT_EQ(at[0], static_cast<char>(t));
        ASSERT_EQ(at[bytes - 1], static_cast<char>(t));
        PrivateHeap::release(at, bytes);
      }
    });
  }
}

}  // namespace
}  // namespace stretto
