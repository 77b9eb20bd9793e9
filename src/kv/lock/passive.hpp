// SPDX-License-Identifier: BSD-3-Clause
// passive: readers note in a line of their own that they are inside, and the writer pays for all fences.
//
// Cost: a reader stores its line twice and loads one word that changes only when somebody writes; no atomic access, no
// fence. The writer makes a system call of some microseconds (membarrier, global expedited) and looks at N lines. Wins
// where reads are many, sections may be long, and must not be run again.
//
// Reader: (1) store inside = 1, (2) load `writing`; if it is set, take `inside` back and wait. Writer: (3) store
// writing = 1, (4) barrier everywhere, (5) load every `inside` and wait until it is 0. Between (1) and (2) the compiler
// keeps the order, but the processor may load before its store is seen. The barrier (4) runs on the reader's processor
// at some point of the reader's program: if before (2), the load (2) comes after (3) and sees it; if after (1), the
// store (1) is seen by (5). Every point is before (2) or after (1). A thread that was not running then has passed a
// full barrier when it was switched.
//
// Where membarrier is missing or refused, the writer says so in `fenced` and readers fence between (1) and (2); a
// reader whose own process could not register fences on its own account. TSan has no such barrier: it sees each pair by
// the acquire loads of the other's release store.
//
// It may be refused later, to a process that has put itself under a seccomp filter. Then the writer sets `fenced` in
// (4), and waits once until no reader that has still seen it unset, between (1) and (2), can have its store (1) unseen:
// a store waits in a processor's buffer for its line, at most until the next interrupt; see
// Machine::let_stores_arrive().
//
// No reader enters while `writing` is set, so the writer waits for sections under way only. A dead client's line is
// cleared.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync>
struct Passive {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "passive";

  struct Shared {
    alignas(shm::kLineBytes) Word writing;
    Word fenced;  // 1: readers must fence for themselves; stays so
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
      if (shared.writing.load_acquire() == 0) [[likely]]
        return Status::ok;  // pairs with release()
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
