// SPDX-License-Identifier: BSD-3-Clause
// 1n-mutex: a mutex for each client. The writer takes all of them (Hsieh and Weihl 1992).
//
// Cost: a reader locks and unlocks one mutex on a line of its own; the writer 2N. Readers do not
// disturb each other. The scheme's weakness is what readers do to the writer: only writer_priority
// (mutexes.hpp) makes them let it pass.
#pragma once
#include "kv/lock/mutexes.hpp"

namespace stretto::kv {

template <class Sync>
struct OneNMutex {
  static constexpr const char* kName = "1n-mutex";

  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) typename Sync::Mutex main;
  };
  static void create(Shared&) {}
  static void create(Client& client) { client.main.init(); }

  template <class L>
  static Status enter(L& lock, Client& client) {
    return mutexes::reader_lock(lock, client.main);
  }
  template <class L>
  static bool leave(L&, Client& client) {
    client.main.unlock();
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) mutexes::writer_lock(lock, i, lock.client(i).main);
    mutexes::brake_off(lock);
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) lock.client(i).main.unlock();
  }

  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv
