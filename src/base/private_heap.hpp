// SPDX-License-Identifier: BSD-3-Clause
// Memory that does not come from malloc, for a thread that must go on while the program is stopped
// inside malloc, with malloc's locks held.
//
// Blocks have 64 bytes or a power of two. Freed blocks up to 64 KiB are kept for the next of their
// size. Longer blocks are mappings of their own. Any thread may call all functions. A forked child
// must not: another thread may have held the lock.
#pragma once
#include <cstddef>
#include <new>
#include <utility>

namespace stretto {

struct PrivateHeap {
  // Null: no memory, and `old` stays as it is. A null `old` has 0 bytes.
  static void* resize(void* old, std::size_t old_bytes, std::size_t bytes);
  // `bytes` as it was asked for. Null is allowed.
  static void release(void* memory, std::size_t bytes);
  static void* take(std::size_t bytes) { return resize(nullptr, 0, bytes); }

  template <class T, class... Arguments>
  static T* make(Arguments&&... arguments) {
    void* const memory = take(sizeof(T));
    return memory != nullptr ? new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
  }
  template <class T>
  static void destroy(T* object) {
    if (object != nullptr) object->~T();
    release(object, sizeof(T));
  }
};

}  // namespace stretto
