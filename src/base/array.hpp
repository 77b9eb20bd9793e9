// SPDX-License-Identifier: BSD-3-Clause
// A growing array of plain values. It lives in other people's processes: it throws no exception and
// runs no constructor of `T`. When memory runs out the array becomes `failed` and drops what is
// pushed from then on. A builder may therefore ask once, at its end.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace stretto {

// Where an array's memory comes from. PrivateHeap (private_heap.hpp) is another such source.
struct Malloc {
  static void* resize(void* old, std::size_t /*old_bytes*/, std::size_t bytes) { return std::realloc(old, bytes); }
  static void release(void* memory, std::size_t /*bytes*/) { std::free(memory); }
};

template <class T, class Source = Malloc>
class Array {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  Array() = default;
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() { Source::release(static_cast<void*>(data_), capacity_bytes()); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t capacity_bytes() const { return capacity_ * sizeof(T); }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  bool reserve(std::size_t capacity) {
    if (capacity <= capacity_) return true;
    void* const memory = Source::resize(static_cast<void*>(data_), capacity_bytes(), capacity * sizeof(T));
    if (!memory) {
      failed_ = true;
      return false;
    }
    data_ = static_cast<T*>(memory);
    capacity_ = capacity;
    return true;
  }
  bool push(const T& value) {
    const T kept = value;  // `value` may lie in the array
    if (size_ == capacity_ && !reserve(capacity_ == 0 ? 8 : 2 * capacity_)) return false;
    data_[size_++] = kept;
    return true;
  }
  void pop() { --size_; }
  // New elements are copies of `value`.
  bool resize(std::size_t size, const T& value) {
    const T kept = value;
    if (!reserve(size)) return false;
    for (std::size_t i = size_; i < size; ++i) data_[i] = kept;
    size_ = size;
    return true;
  }
  // Replaces the elements [first, first + removed) by `added` elements. The caller sets their
  // values.
  bool splice(std::size_t first, std::size_t removed, std::size_t added) {
    const std::size_t size = size_ - removed + added;
    if (size > capacity_ && !reserve(size > 2 * capacity_ ? size : 2 * capacity_)) return false;
    if (size_ != first + removed) {
      std::memmove(static_cast<void*>(data_ + first + added), data_ + first + removed,
                   (size_ - first - removed) * sizeof(T));
    }
    size_ = size;
    return true;
  }
  // Forgets the elements and keeps the memory.
  void clear() {
    size_ = 0;
    failed_ = false;
  }
  void swap(Array& other) noexcept {
    const auto exchange = [](auto& a, auto& b) {
      const auto kept = a;
      a = b;
      b = kept;
    };
    exchange(data_, other.data_);
    exchange(size_, other.size_);
    exchange(capacity_, other.capacity_);
    exchange(failed_, other.failed_);
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  bool failed_ = false;
};

}  // namespace stretto
