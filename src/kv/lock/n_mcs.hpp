// SPDX-License-Identifier: BSD-3-Clause
// n-mcs: each client has a queue in which it and the writer stand (S3, N-MCS; after Mellor-Crummey
// and Scott 1991).
//
// Cost: a reader does one swap and one compare-and-swap of one word. The writer does both N times.
// The order is strictly first come, first served: the writer waits for the current section and for
// none that begins later. The writer joins all queues before it waits in any, so it waits for all
// readers at once.
//
// A queue has a head, which names the last to come (0: nobody), and for each of the two whether it
// is blocked. To enter, a process marks itself blocked and swaps itself into the head. If the other
// was there, the process waits until it is unblocked. To leave, a process sets the head back to 0
// if it is still the last. Otherwise the other is behind it, and the process unblocks the other.
//
// S3's records have links, which say who is behind. With two processes that is always the other
// one, so there are no links here. No process waits for a link, and a queue is one line. Handing
// the queue over takes one access to that line on either side; with records, three lines would
// travel one after the other.
//
// Exclusion: swaps on one word are totally ordered. Exactly one process finds 0, and the other
// waits for it. The section's accesses lie after the swap (or the acquire load of `blocked`) and
// before the compare-and-swap (or the release store of `blocked`).
//
// No wake-up is lost. A leaving process unblocks the other only when its compare-and-swap has seen
// the other's swap, and the other has marked itself before that swap. No wake-up is left over: each
// swap that finds the other is answered once.
//
// Death of a client. The client holds the queue, stands in it, or neither. If it stands behind the
// writer, the writer hands the queue to it as to a living client. The next time the writer waits
// for it as for a client that died holding the queue. The writer then sets the queue to the state
// in which the writer alone holds it (repair). tests/kv runs every interleaving of both sides, with
// the client's death before each of its steps.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync>
struct NMcs {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "n-mcs";

  static constexpr std::uint64_t kNobody = 0, kClient = 1, kWriter = 2;
  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) Word head;
    Word blocked[2];  // the client, the writer
  };
  static void create(Shared&) {}
  static void create(Client& queue) {
    queue.head.store_relaxed(kNobody);
    for (Word& blocked : queue.blocked) blocked.store_relaxed(0);
  }

  template <class L>
  static Status enter(L& lock, Client& queue) {
    if (!line_up(queue, kClient)) return Status::ok;
    return lock.wait_for_writer([&] { return unblocked(queue, kClient); }) ? Status::ok : Status::peer_gone;
  }
  template <class L>
  static bool leave(L&, Client& queue) {
    step_out(queue, kClient, kWriter);
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) {
      if (!line_up(lock.client(i), kWriter)) unblock(lock.client(i), kWriter);
    }
    for (unsigned i = 0; i < lock.clients(); ++i) {
      lock.wait_for_client(i, [&] { return unblocked(lock.client(i), kWriter); });
    }
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) step_out(lock.client(i), kWriter, kClient);
  }

  template <class L>
  static void repair(L&, Client& queue) {
    queue.head.store_relaxed(kWriter);
  }

 private:
  static Word& blocked(Client& queue, std::uint64_t who) { return queue.blocked[who - 1]; }

  // True if the other is ahead in the queue.
  static bool line_up(Client& queue, std::uint64_t me) {
    blocked(queue, me).store_relaxed(1);
    return queue.head.exchange(me) != kNobody;
  }
  static bool unblocked(Client& queue, std::uint64_t me) { return blocked(queue, me).load_acquire() == 0; }
  static void unblock(Client& queue, std::uint64_t who) { blocked(queue, who).store_release(0); }
  static void step_out(Client& queue, std::uint64_t me, std::uint64_t other) {
    if (!queue.head.compare_exchange(me, kNobody)) unblock(queue, other);
  }
};

}  // namespace stretto::kv
