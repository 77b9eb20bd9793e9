// SPDX-License-Identifier: BSD-3-Clause
// seqlock: readers look at a version before and after, and begin again if it changed; they write nothing.
//
// Cost: a reader loads one word twice. The writer stores it twice and never waits, until a reader has used the fair
// fallback: from then on it looks at every client's line. Wins where writes are rare and sections short; the body of a
// section may see half-written data and must survive that (Lock::read).
//
// Version: even, nobody writes; odd, somebody does. Reader: load the version (acquire), the section's loads, an acquire
// fence, load the version. If it is the same even number, no store of a writer's section was seen: the writer makes the
// version odd before its stores (release fence) and even after (release store), so who sees such a store sees the
// version changed.
//
// Fallback: a reader that has begun again kTries times stops hoping. It says `wants` in its line; before its next
// section, the writer waits for all who want until they have had their turn. In its turn the reader says `inside`,
// looks at the version, and if that is even the section is safe: the writer, having made the version odd, waits until
// nobody is inside. (Reader: store the line, fence, load the version; writer: store the version, fence, load the lines:
// one of the two sees the other.) A client has one turn per section of the writer's, so neither side starves.
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
    Word fallback;  // 1: some reader has used it
  };
  struct Client {
    alignas(shm::kLineBytes) Word state;
    Word tries;  // of the section under way; the client's own
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
      client.state.store_release(kIdle);  // pairs with acquire(): what was read was read before
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
