// SPDX-License-Identifier: BSD-3-Clause
// n-mutex-signal: a signal variable and a mutex for each client (S3, N(mutex+signal)).
//
// Cost: a reader loads one variable on a line that changes only when somebody writes, and locks and unlocks one mutex: half
// of what 2n-mutex costs; the writer stores N variables twice and locks and unlocks N mutexes.
//
// The mutex alone excludes; the signal only keeps readers from coming back before the writer has been in. A reader that
// loaded 0 just before the writer stored 1 gets the mutex once more at most, then sees the signal. So the writer waits for at most one
// more section of each reader, and no ordering of the signal matters but that it is seen in the end.
#pragma once
#include "kv/lock/mutexes.hpp"

namespace stretto::kv {

template <class Sync>
struct NMutexSignal {
  static constexpr const char* kName = "n-mutex-signal";

  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) typename Sync::Word signal;  // 1: the writer wants in, or is in
    alignas(shm::kLineBytes) typename Sync::Mutex main;
  };
  static void create(Shared&) {}
  static void create(Client& client) {
    client.signal.store_relaxed(0);
    client.main.init();
  }

  template <class L>
  static Status enter(L& lock, Client& client) {
    return mutexes::reader_lock(lock, client.main, [&] { return client.signal.load_relaxed() == 0; });
  }
  template <class L>
  static bool leave(L&, Client& client) {
    client.main.unlock();
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.seats(); ++i) lock.client(i).signal.store_relaxed(1);
    for (unsigned i = 0; i < lock.seats(); ++i) {
      lock.wait_for_client(i, [&] { return lock.client(i).main.try_lock() != Sync::Mutex::Try::busy; });
    }
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.seats(); ++i) lock.client(i).signal.store_relaxed(0);
    for (unsigned i = 0; i < lock.seats(); ++i) lock.client(i).main.unlock();
  }

  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv
