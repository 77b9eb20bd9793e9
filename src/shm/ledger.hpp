// SPDX-License-Identifier: BSD-3-Clause
// What a process publishes of itself in its segment for observers outside its job (`stretto top`):
// what it has done so far, and where to look for what it is doing.
//
// The owner makes plain stores to lines that only it writes. It reads no clock and makes no system
// call. Every word stands for itself: counters only grow. So a reader that catches a tally between
// two of its words is wrong by one call. Words that must be read together are a note, which has its
// own version (journal.hpp). Observers hold up no process and can hurt none: they map the segment
// read-only.
#pragma once
#include "base/collective.hpp"
#include "shm/atomic.hpp"

namespace stretto::shm {

// Calls of one collective, on all communicators.
struct alignas(64) Tally {
  Atomic<std::uint64_t> calls[kPaths];
  Atomic<std::uint64_t> bytes;  // through the engine: sent plus received
  Atomic<std::uint64_t> ns;     // with STRETTO_STATS

  // `shared`: threads of the process may count at the same time.
  void count(Path path, std::uint64_t more_bytes, std::uint64_t more_ns, bool shared) {
    add(calls[static_cast<int>(path)], 1, shared);
    add(bytes, more_bytes, shared);
    if (more_ns != 0) add(ns, more_ns, shared);
  }

 private:
  static void add(Atomic<std::uint64_t>& word, std::uint64_t more, bool shared) {
    if (shared) [[unlikely]] {
      word.fetch_add(more);
    } else {
      word.store_relaxed(word.load_relaxed() + more);
    }
  }
};
static_assert(sizeof(Tally) == 64);

struct alignas(kLineBytes) Activity {
  // Noted so far: the number of the latest note, which the process may be about to write.
  Atomic<std::uint64_t> calls;
  // When a wait began that has lasted long enough to read a clock (wait.hpp). 0: there is none. A
  // hint.
  Atomic<std::uint64_t> waiting_since_ns;
  // Offset of the newest communicator's progress line. 0: there is none.
  Atomic<std::uint64_t> communicators;
  // Offset of the key-value table that says who this process is. 0: none yet.
  Atomic<std::uint64_t> table;
  Atomic<std::uint64_t> blocks_end;  // the control lines lie below
};

// The communicators that this process has left last, whose blocks may serve others. So a peer that
// waits there learns that this rank will not come. Written under the process's lock.
struct Departures {
  static constexpr unsigned kKept = 16;
  struct {
    Atomic<std::uint64_t> generation;  // 0: none, or it is being written
    Atomic<std::uint64_t> calls;       // that this rank had made there
  } of[kKept];
  Atomic<std::uint64_t> count;

  void add(std::uint64_t generation, std::uint64_t calls) {
    const std::uint64_t number = count.load_relaxed();
    auto& place = of[number % kKept];
    place.generation.store_release(0);
    place.calls.store_release(calls);
    place.generation.store_release(generation);  // pairs with find
    count.store_release(number + 1);
  }
  // The generation is loaded before and after: another may have taken its place.
  [[nodiscard]] bool find(std::uint64_t generation, std::uint64_t* calls) const {
    for (const auto& place : of) {
      if (place.generation.load_acquire() != generation) continue;
      *calls = place.calls.load_acquire();
      if (place.generation.load_acquire() == generation) return true;
    }
    return false;
  }
};

struct Ledger {
  Activity activity;
  Tally of[kCollectives];
  Departures departures;
};

}  // namespace stretto::shm
