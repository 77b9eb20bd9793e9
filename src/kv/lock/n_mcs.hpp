// SPDX-License-Identifier: BSD-3-Clause
// n-mcs: a queue for each client in which it and the writer stand in line (S3, N-MCS; after Mellor-Crummey and Scott
// 1991).
//
// Cost: a reader swaps and compares-and-swaps one word; the writer does so N times. Strictly first come, first served:
// the writer waits for the section under way and for none that begins later. It joins all queues before it waits in
// any, so that it waits for all readers at once.
//
// A queue has a head, which names who came last (0: nobody), and for each of the two whether it is blocked. Who comes
// marks itself blocked and swaps itself into the head; if somebody was there, it waits until unblocked. Who leaves puts
// the head back to 0 if it is still the last; otherwise the other is behind it, and is unblocked.
//
// Of S3's records there are no links left: a link says who is behind, and of two that is the other one. So nobody waits
// for a link either, and a queue is one line. It is handed over by one access to the line on either side, where three
// lines travelled one after the other.
//
// Exclusion: swaps on one word are totally ordered, so exactly one finds 0, and the other waits for it. The section's
// accesses lie between swap (or the acquire load of `blocked`) and compare-and-swap (or the release store of
// `blocked`). No wake-up is lost: who leaves unblocks the other only when its compare-and-swap has seen the other's
// swap, before which that one has marked itself. And none is left over: each swap that finds somebody is answered once.
//
// Death of a client. It holds the queue, stands in it, or neither. Where it stands behind the writer, the writer hands
// the queue to it as to the living; the next time it waits for it as for one that died holding it, and sets the queue
// to what it is when the writer alone holds it (repair). tests/kv runs every interleaving of both sides, with the
// client's death before each of its steps.
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

  // True if somebody is before us.
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
