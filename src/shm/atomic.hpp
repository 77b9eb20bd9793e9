// SPDX-License-Identifier: BSD-3-Clause
// The one way to write memory that another process reads. Inside is a plain T, so shared structs
// stay trivially copyable and readable in a debugger. Orders are in the names, so every use shows
// its order.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace stretto::shm {

template <class T>
class Atomic {
  static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  static_assert(std::atomic_ref<T>::is_always_lock_free, "must work across processes: no hidden lock");

 public:
  [[nodiscard]] T load_relaxed() const { return ref().load(std::memory_order_relaxed); }
  [[nodiscard]] T load_acquire() const { return ref().load(std::memory_order_acquire); }
  void store_relaxed(T value) { ref().store(value, std::memory_order_relaxed); }
  void store_release(T value) { ref().store(value, std::memory_order_release); }
  // For counters of a process whose threads count at the same time.
  T fetch_add(T value) { return ref().fetch_add(value, std::memory_order_relaxed); }

  // For lines that several processes write (src/kv): a full barrier on both sides of the change.
  T exchange(T value) { return ref().exchange(value, std::memory_order_seq_cst); }
  bool compare_exchange(T expected, T value) {
    return ref().compare_exchange_strong(expected, value, std::memory_order_seq_cst, std::memory_order_acquire);
  }

 private:
  [[nodiscard]] std::atomic_ref<T> ref() const { return std::atomic_ref<T>(const_cast<T&>(value_)); }
  alignas(sizeof(T)) T value_;
};

// Distance between lines that different processes write. Adjacent-line prefetchers pull pairs of
// 64-byte lines.
inline constexpr std::size_t kLineBytes = 128;

}  // namespace stretto::shm
