// SPDX-License-Identifier: BSD-3-Clause
// seqlock: readers look at a version before and after a section, and begin again if it changed.
// They write nothing.
//
// Cost: a reader loads one word twice. The writer stores it twice and does not wait, until a reader
// has used the fair fallback. From then on it looks at every client's line. The scheme wins where
// writes are rare and sections short. A section's body may see half-written data and must survive
// that (Lock::read).
//
// Version: even, the writer does not write; odd, it does. A reader loads the version (acquire),
// makes the section's loads, makes an acquire fence, and loads the version again. If it is the same
// even number, the reader saw no store of a writer's section. The writer makes the version odd
// before its stores (release fence) and even after them (release store). A reader that sees such a
// store therefore sees that the version changed.
//
// Fallback: a reader that has begun again kTries times says `wants` in its line. Before its next
// section the writer waits until all who want have had their turn. In its turn the reader says
// `inside` and looks at the version. If that is even, the section is safe: the writer, after it
// made the version odd, waits until nobody is inside. The reader stores the line, fences, and loads
// the version. The writer stores the version, fences, and loads the lines. One of the two sees the
// other. A client has one turn for each section of the writer's, so neither side starves.
//
// A dead client matters only in the fallback: the writer clears its line.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync, unsigned kTries>
struct SeqLockTrying {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "seqlock";

  static constexpr std::uint64_t kIdle = 0, kWants = 1, kInside = 2;
  struct Shared {
    alignas(shm::kLineBytes) Word version;
    Word fallback;  // 1: a reader has used it
  };
  struct Client {
    alignas(shm::kLineBytes) Word state;
    Word tries;  // of the current section; the client's own
  };
  static void create(Shared& shared) {
    shared.version.store_relaxed(0);
    shared.fallback.store_relaxed(0);
  }
  static void create(Client& client) {
    client.state.store_relaxed(kIdle);
    client.tries.store_relaxed(0);
  }

  template <class L>
  static Status enter(L& lock, Client& client) {
    Word& version = lock.shared().version;
    std::uint64_t& seen = lock.ticket();
    seen = version.load_acquire();
    if (seen % 2 == 0) [[likely]]
      return Status::ok;
    const auto even = [&] { return (seen = version.load_acquire()) % 2 == 0; };
    if (client.tries.load_relaxed() < kTries) return lock.wait_for_writer(even) ? Status::ok : Status::peer_gone;
    return enter_fairly(lock, client);
  }

  template <class L>
  static bool leave(L& lock, Client& client) {
    if (client.state.load_relaxed() == kInside) [[unlikely]] {
      client.state.store_release(kIdle);  // pairs with acquire(): all reads of the section come before it
      client.tries.store_relaxed(0);
      return true;
    }
    Sync::fence_acquire();
    if (lock.shared().version.load_relaxed() == lock.ticket()) [[likely]] {
      if (client.tries.load_relaxed() != 0) client.tries.store_relaxed(0);
      return true;
    }
    client.tries.store_relaxed(client.tries.load_relaxed() + 1);
    return false;
  }

  template <class L>
  static void acquire(L& lock) {
    Shared& shared = lock.shared();
    if (shared.fallback.load_relaxed() != 0) pass(lock, kWants);
    shared.version.store_relaxed(shared.version.load_relaxed() + 1);
    Sync::fence();  // pairs with the fences in enter_fairly() and leave()
    if (shared.fallback.load_relaxed() != 0) pass(lock, kInside);
  }
  template <class L>
  static void release(L& lock) {
    Word& version = lock.shared().version;
    version.store_release(version.load_relaxed() + 1);
  }

  template <class L>
  static void repair(L&, Client& client) {
    client.state.store_relaxed(kIdle);
    client.tries.store_relaxed(0);
  }

 private:
  template <class L>
  static Status enter_fairly(L& lock, Client& client) {
    Shared& shared = lock.shared();
    shared.fallback.store_relaxed(1);
    client.state.store_relaxed(kWants);
    for (;;) {
      if (!lock.wait_for_writer([&] { return shared.version.load_acquire() % 2 == 0; })) return Status::peer_gone;
      client.state.store_relaxed(kInside);
      Sync::fence();  // pairs with the fence in acquire()
      if (shared.version.load_acquire() % 2 == 0) return Status::ok;
      client.state.store_release(kWants);
    }
  }

  // The writer waits for every client that is in this state now.
  template <class L>
  static void pass(L& lock, std::uint64_t state) {
    for (unsigned i = 0; i < lock.clients(); ++i) {
      lock.wait_for_client(i, [&] { return lock.client(i).state.load_acquire() != state; });
    }
  }
};

template <class Sync>
struct SeqLock : SeqLockTrying<Sync, 16> {};

}  // namespace stretto::kv
