// SPDX-License-Identifier: BSD-3-Clause
// Only files of sys use this header.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace stretto::sys::detail {

// Restores errno at the end of a scope. A program may look at errno after an MPI call, so nothing
// in sys may change it.
class ErrnoKept {
 public:
  ErrnoKept() : kept_(errno) {}
  ~ErrnoKept() { errno = kept_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  int kept_;
};

// An object on the heap for as long as its scope, because the program's threads may have small
// stacks. The caller asks whether it exists.
template <class T>
class OnHeap {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  OnHeap() {
    if (void* const memory = std::malloc(sizeof(T))) object_ = new (memory) T;
  }
  ~OnHeap() { std::free(object_); }
  OnHeap(const OnHeap&) = delete;
  OnHeap& operator=(const OnHeap&) = delete;
  explicit operator bool() const { return object_ != nullptr; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }

 private:
  T* object_ = nullptr;
};

// Repeats the call until it no longer fails with EINTR.
template <typename Call>
auto retried(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

// Runs a function in a child that has this process's memory, while the calling thread waits for its
// end. No page is copied, as in vfork(), also none that a network card writes to. The child's end
// sends no signal, and the program's own waits do not see it. Returns 0 or errno. `more`: further
// flags of clone().
int run_beside(int (*function)(void* data), void* data, std::size_t stack_bytes, int more = 0);

// Reads the beginning of a small file into `text`, at most capacity - 1 bytes, terminated. Returns
// 0 or errno.
int read_small_file(const char* path, char* text, std::size_t capacity, std::size_t* bytes);

constexpr std::size_t kMaskWords = 1024;  // 65536 processors: the kernel refuses a mask shorter than its own
struct Mask {
  std::uint64_t words[kMaskWords];
};

}  // namespace stretto::sys::detail
