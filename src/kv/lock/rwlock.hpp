// SPDX-License-Identifier: BSD-3-Clause
// rwlock: one POSIX reader-writer lock for all (OpenPMIx's ds12).
//
// Cost: two read-modify-write accesses to a line that all readers share, so readers slow each other
// down. The scheme wins nowhere. It is here for comparison.
//
// Nothing recovers a POSIX rwlock whose reader has died, so the writer leaves it behind. There are
// places for two instances. A writer that has waited in vain makes the other one afresh, locks it,
// and makes it current. Each reader therefore announces, in a line of its own, which instance it
// uses. It does so before it tries the lock, and withdraws the announcement after it has left.
//
// Why a reader left behind does no harm: it stores its announcement, tries the lock, then loads
// `current`. The writer stores `current`, then loads the announcements. Both sides have a full
// fence in between. Either the writer sees that reader and waits until it has left. Or the reader
// sees that it is late, undoes what it did and begins again. The place of an instance is made again
// two instances later. Before that the writer waits until all announcements other than the current
// one are gone.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync>
struct RwLock {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "rwlock";

  struct Shared {
    alignas(shm::kLineBytes) Word current;  // number of the instance, from 1
    struct {
      alignas(shm::kLineBytes) typename Sync::RwLock lock;
    } places[2];
  };
  struct Client {
    alignas(shm::kLineBytes) Word uses;  // number of the instance; 0: none
  };
  static void create(Shared& shared) {
    shared.current.store_relaxed(1);
    shared.places[1].lock.init();
  }
  static void create(Client& client) { client.uses.store_relaxed(0); }

  template <class L>
  static Status enter(L& lock, Client& client) {
    auto& shared = lock.shared();
    for (;;) {
      const std::uint64_t instance = shared.current.load_acquire();
      auto& place = shared.places[instance & 1].lock;
      client.uses.store_relaxed(instance);
      bool locked = false;
      const auto through = [&] {
        locked = place.try_read();
        return locked || shared.current.load_acquire() != instance;
      };
      if (!lock.wait_for_writer(through)) return Status::peer_gone;
      Sync::fence_after_exchange();  // pairs with the fence in abandon()
      if (shared.current.load_acquire() == instance) return Status::ok;
      if (locked) place.unlock();
      client.uses.store_release(0);
    }
  }

  template <class L>
  static bool leave(L& lock, Client& client) {
    lock.shared().places[client.uses.load_relaxed() & 1].lock.unlock();
    client.uses.store_release(0);  // pairs with abandon(): all reads of the section come before it
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    constexpr long kPatienceNs = 5'000'000;
    auto& shared = lock.shared();
    const std::uint64_t instance = shared.current.load_relaxed();
    while (!shared.places[instance & 1].lock.write_within(kPatienceNs)) {
      if (dead_reader(lock, instance)) return abandon(lock, instance);
    }
  }

  template <class L>
  static void release(L& lock) {
    lock.shared().places[lock.shared().current.load_relaxed() & 1].lock.unlock();
  }

  template <class L>
  static void repair(L&, Client& client) {
    client.uses.store_relaxed(0);
  }

 private:
  template <class L>
  static bool dead_reader(L& lock, std::uint64_t instance) {
    for (unsigned i = 0; i < lock.clients(); ++i) {
      if (lock.client(i).uses.load_acquire() == instance && lock.is_dead(i)) return true;
    }
    return false;
  }

  // The writer goes on with the next instance. It is inside when all readers of this one have left
  // or are dead.
  template <class L>
  static void abandon(L& lock, std::uint64_t instance) {
    auto& shared = lock.shared();
    auto& next = shared.places[(instance + 1) & 1].lock;
    next.init();
    while (!next.write_within(1'000'000'000)) {
    }
    shared.current.store_release(instance + 1);
    Sync::fence();  // pairs with the fence in enter()
    for (unsigned i = 0; i < lock.clients(); ++i) {
      lock.wait_for_client(i, [&] {
        const std::uint64_t uses = lock.client(i).uses.load_acquire();
        return uses == 0 || uses == instance + 1;
      });
    }
  }
};

}  // namespace stretto::kv
