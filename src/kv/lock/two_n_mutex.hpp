// SPDX-License-Identifier: BSD-3-Clause
// 2n-mutex: a signal mutex and a main mutex for each client (OpenPMIx's ds21).
//
// Cost: a reader locks and unlocks two mutexes, the writer 4N. The reader holds the signal mutex
// only while it gets the main one. The writer first takes all signal mutexes; from then on no
// reader can begin. Then it takes all main mutexes. A reader releases its main mutex at the end of
// the current section.
#pragma once
#include "kv/lock/mutexes.hpp"

namespace stretto::kv {

template <class Sync>
struct TwoNMutex {
  static constexpr const char* kName = "2n-mutex";

  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) typename Sync::Mutex signal;
    alignas(shm::kLineBytes) typename Sync::Mutex main;
  };
  static void create(Shared&) {}
  static void create(Client& client) {
    client.signal.init();
    client.main.init();
  }

  template <class L>
  static Status enter(L& lock, Client& client) {
    if (const Status status = mutexes::reader_lock(lock, client.signal); status != Status::ok) return status;
    const Status status = mutexes::reader_lock(lock, client.main, [] { return true; });
    if (status == Status::ok) client.signal.unlock();
    return status;
  }
  template <class L>
  static bool leave(L&, Client& client) {
    client.main.unlock();
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) mutexes::writer_lock(lock, i, lock.client(i).signal);
    for (unsigned i = 0; i < lock.clients(); ++i) mutexes::writer_lock(lock, i, lock.client(i).main);
    mutexes::brake_off(lock);
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) lock.client(i).signal.unlock();
    for (unsigned i = 0; i < lock.clients(); ++i) lock.client(i).main.unlock();
  }

  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv
