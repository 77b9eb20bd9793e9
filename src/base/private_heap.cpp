// SPDX-License-Identifier: BSD-3-Clause
#include "base/private_heap.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/locked.hpp"
#include "sys/sys.hpp"

namespace stretto {
namespace {

constexpr std::size_t kLeast = 64, kMostKept = 64 << 10, kChunk = 256 << 10;
constexpr int kSizes = std::bit_width(kMostKept / kLeast);

struct Block {
  Block* next;
};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Block* g_free[kSizes] = {};
constinit char* g_chunk = nullptr;  // what is left of the latest chunk
constinit std::size_t g_chunk_bytes = 0;

std::size_t block_bytes(std::size_t bytes) { return std::bit_ceil(std::max(bytes, kLeast)); }
int size_index(std::size_t block) { return static_cast<int>(std::bit_width(block / kLeast)) - 1; }

char* map(std::size_t bytes) {
  void* memory = nullptr;
  return sys::map_private(bytes, &memory) == 0 ? static_cast<char*>(memory) : nullptr;
}

// With the lock held. The rest of a chunk that is too short goes to the free blocks.
void* cut(std::size_t block) {
  if (g_chunk_bytes < block) {
    char* const chunk = map(kChunk);
    if (chunk == nullptr) return nullptr;
    while (g_chunk_bytes >= kLeast) {
      const std::size_t piece = std::min(std::bit_floor(g_chunk_bytes), kMostKept);
      Block*& first = g_free[size_index(piece)];
      first = new (g_chunk) Block{first};
      g_chunk += piece;
      g_chunk_bytes -= piece;
    }
    g_chunk = chunk;
    g_chunk_bytes = kChunk;
  }
  void* const memory = g_chunk;
  g_chunk += block;
  g_chunk_bytes -= block;
  return memory;
}

void* take_block(std::size_t block) {
  if (block > kMostKept) return map(block);
  const Locked locked(g_lock);
  Block*& first = g_free[size_index(block)];
  if (first == nullptr) return cut(block);
  void* const memory = first;
  first = first->next;
  return memory;
}

}  // namespace

void* PrivateHeap::resize(void* old, std::size_t old_bytes, std::size_t bytes) {
  if (old != nullptr && block_bytes(old_bytes) == block_bytes(bytes)) return old;
  void* const memory = take_block(block_bytes(bytes));
  if (memory == nullptr) return nullptr;
  if (old != nullptr) std::memcpy(memory, old, std::min(old_bytes, bytes));
  release(old, old_bytes);
  return memory;
}

void PrivateHeap::release(void* memory, std::size_t bytes) {
  if (memory == nullptr) return;
  const std::size_t block = block_bytes(bytes);
  if (block > kMostKept) return sys::unmap(memory, block);
  const Locked locked(g_lock);
  Block*& first = g_free[size_index(block)];
  first = new (memory) Block{first};
}

}  // namespace stretto
