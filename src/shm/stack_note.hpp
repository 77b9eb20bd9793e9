// SPDX-License-Identifier: BSD-3-Clause
// Where a process is that is in no call of MPI: its stack, in its segment. With a watchdog only.
//
// A rank whose call does not end raises `wanted`. The watchdog of a process that is in the program,
// and that sees this, takes the stack of its own main thread and writes it here, once for as long
// as the process makes no call. One thread writes. `version` is odd while it does, as in
// host_calls.hpp, where the orders are explained.
#pragma once
#include <cstdint>
#include <cstring>

#include "shm/atomic.hpp"

namespace stretto::shm {

struct StackText {
  // A line for each frame, the innermost first. Frames of Python come before all others:
  // "solve.py:33 in step", then "/path/app+0x1234". A first line that begins with '!' says why
  // there is none.
  char text[2048] = "";
  std::uint64_t calls = 0;  // how many calls the process had made
};

struct alignas(kLineBytes) StackNote {
  static constexpr std::size_t kWords = sizeof(StackText) / sizeof(std::uint64_t);
  static_assert(sizeof(StackText) % sizeof(std::uint64_t) == 0);
  Atomic<std::uint64_t> wanted;   // 1: this process wants to know where others are
  Atomic<std::uint64_t> version;  // 0: there is none yet
  Atomic<std::uint64_t> words[kWords];

  void write(const StackText& stack) {
    std::uint64_t all[kWords];
    std::memcpy(all, &stack, sizeof all);
    const std::uint64_t now = version.load_relaxed();
    version.store_release(now + 1);
    for (std::size_t i = 0; i < kWords; ++i) words[i].store_release(all[i]);
    version.store_release(now + 2);
  }
  // False: there is none, or it is being written.
  bool read(StackText* stack) const {
    const std::uint64_t before = version.load_acquire();
    if (before == 0 || (before & 1) != 0) return false;
    std::uint64_t all[kWords];
    for (std::size_t i = 0; i < kWords; ++i) all[i] = words[i].load_acquire();
    std::memcpy(stack, all, sizeof all);
    stack->text[sizeof stack->text - 1] = 0;
    return version.load_acquire() == before;
  }
};

}  // namespace stretto::shm
