// SPDX-License-Identifier: BSD-3-Clause
// No lock, but the least cost of a lock whose readers and writer meet on a line of the reader's, as
// in a queue. The reader marks the line when it comes and when it goes. The writer swaps its own
// mark in, once for each reader, and waits for no reader.
#pragma once
#include "correctness.hpp"

namespace stretto::kv::bench {

template <class Sync>
struct Swap : Dummy<Sync> {
  static constexpr const char* kName = "swap";
  struct Client {
    alignas(shm::kLineBytes) typename Sync::Word mark;
  };
  using Dummy<Sync>::create;
  static void create(Client& client) { client.mark.store_relaxed(0); }

  template <class L>
  static Status enter(L&, Client& client) {
    client.mark.store_relaxed(1);
    return Status::ok;
  }
  template <class L>
  static bool leave(L&, Client& client) {
    client.mark.store_release(0);
    return true;
  }
  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) (void)lock.client(i).mark.exchange(2);
  }
  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv::bench
