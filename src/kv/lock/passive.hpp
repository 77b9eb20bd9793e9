// SPDX-License-Identifier: BSD-3-Clause
// passive: a reader notes in a line of its own that it is inside, and the writer pays for all
// fences.
//
// Cost: a reader stores its line twice and loads one word that changes only when the writer writes.
// It makes no atomic access and no fence. The writer makes a system call of some microseconds
// (membarrier, global expedited) and looks at N lines. The scheme wins where reads are many and
// where sections may be long and must not run again.
//
//   reader  (1) store inside = 1
//           (2) load `writing`; if it is set, take `inside` back and wait
//   writer  (3) store writing = 1
//           (4) barrier everywhere
//           (5) load every `inside` and wait until it is 0
//
// Between (1) and (2) the compiler keeps the order, but the processor may load before its store is
// seen. The barrier (4) runs on the reader's processor at some point of the reader's program. If
// that point is before (2), the load (2) comes after (3) and sees it. If it is after (1), (5) sees
// the store (1). Every point is before (2) or after (1). A thread that did not run at that time has
// passed a full barrier when it was switched.
//
// Where membarrier is missing or refused, the writer says so in `fenced`. Readers then fence
// between (1) and (2). A reader whose own process could not register always fences. TSan has no
// such barrier: it orders each pair by acquire loads that see the other's release store.
//
// The system may refuse membarrier later, to a process that has put itself under a seccomp filter.
// The writer then sets `fenced` in (4), and waits once. A reader may still have seen `fenced` unset
// between (1) and (2). The wait ends when no such reader's store (1) can be unseen. A store waits
// in a processor's buffer for its line, at most until the next interrupt: see
// Machine::let_stores_arrive().
//
// No reader enters while `writing` is set, so the writer waits only for sections that have begun.
// The writer clears a dead client's line.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync>
struct Passive {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "passive";

  struct Shared {
    alignas(shm::kLineBytes) Word writing;
    Word fenced;  // 1: readers must fence for themselves; it stays 1
  };
  struct Client {
    alignas(shm::kLineBytes) Word inside;
  };
  static void create(Shared& shared) {
    shared.writing.store_relaxed(0);
    shared.fenced.store_relaxed(Sync::barrier_everywhere() ? 0 : 1);
  }
  static void create(Client& client) { client.inside.store_relaxed(0); }

  template <class L>
  static Status enter(L& lock, Client& client) {
    Shared& shared = lock.shared();
    for (;;) {
      client.inside.store_relaxed(1);
      if (lock.unregistered() || shared.fenced.load_relaxed() != 0) [[unlikely]] {
        Sync::fence();  // pairs with the fence in acquire()
      } else {
        Sync::fence_light();  // made full by barrier_everywhere() in acquire()
      }
      // The acquire load pairs with release().
      if (shared.writing.load_acquire() == 0) [[likely]]
        return Status::ok;
      client.inside.store_release(0);
      if (!lock.wait_for_writer([&] { return shared.writing.load_acquire() == 0; })) return Status::peer_gone;
    }
  }
  template <class L>
  static bool leave(L&, Client& client) {
    client.inside.store_release(0);  // pairs with the loads in acquire()
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    Shared& shared = lock.shared();
    shared.writing.store_relaxed(1);
    Sync::fence();
    if (shared.fenced.load_relaxed() == 0 && !Sync::barrier_everywhere()) [[unlikely]]
      have_readers_fence(shared);
    for (unsigned i = 0; i < lock.clients(); ++i) {
      lock.wait_for_client(i, [&] { return lock.client(i).inside.load_acquire() == 0; });
    }
  }
  template <class L>
  static void release(L& lock) {
    lock.shared().writing.store_release(0);
  }

  template <class L>
  static void repair(L&, Client& client) {
    client.inside.store_relaxed(0);
  }

 private:
  static void have_readers_fence(Shared& shared) {
    shared.fenced.store_relaxed(1);
    Sync::fence();
    Sync::let_stores_arrive();
  }
};

}  // namespace stretto::kv
