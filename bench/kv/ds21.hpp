// SPDX-License-Identifier: BSD-3-Clause
// OpenPMIx's ds21 as it is, for comparison: the scheme of 2n-mutex on plain process-shared mutexes,
// waiting in the kernel. It recovers from nothing.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv::bench {

template <class Sync>
struct Ds21 {
  static constexpr const char* kName = "ds21";
  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) pthread_mutex_t signal;
    alignas(shm::kLineBytes) pthread_mutex_t main;
  };
  static void create(Shared&) {}
  static void create(Client& client) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&client.signal, &attributes);
    pthread_mutex_init(&client.main, &attributes);
  }

  template <class L>
  static Status enter(L&, Client& client) {
    pthread_mutex_lock(&client.signal);
    pthread_mutex_lock(&client.main);
    pthread_mutex_unlock(&client.signal);
    return Status::ok;
  }
  template <class L>
  static bool leave(L&, Client& client) {
    pthread_mutex_unlock(&client.main);
    return true;
  }
  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) pthread_mutex_lock(&lock.client(i).signal);
    for (unsigned i = 0; i < lock.clients(); ++i) pthread_mutex_lock(&lock.client(i).main);
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) pthread_mutex_unlock(&lock.client(i).signal);
    for (unsigned i = 0; i < lock.clients(); ++i) pthread_mutex_unlock(&lock.client(i).main);
  }
  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv::bench
