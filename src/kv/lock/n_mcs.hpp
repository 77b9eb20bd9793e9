// SPDX-License-Identifier: BSD-3-Clause
// n-mcs: a queue for each client in which it and the writer stand in line (S3, N-MCS; after Mellor-Crummey and Scott 1991).
//
// Cost: a reader swaps and compares-and-swaps one word; the writer does so N times. Strictly first come, first served: the writer
// waits for the section under way and for none that begins later. It joins all queues before it waits in any, so that it waits
// for all readers at once.
//
// A queue has a head and two records, the client's and the writer's; indices in place of pointers. The head names who came last, 0:
// nobody. Who comes swaps its index into the head. If somebody was there, it marks itself blocked, links itself to that one's
// record, and waits until unblocked. Who leaves puts the head back to 0 if it is still the last; otherwise it waits for the
// other's link, which is on its way, and unblocks it.
//
// Exclusion: swaps on one word are totally ordered, so exactly one finds 0, and the other waits for it. The section's accesses lie
// between swap (or the acquire load of `blocked`) and compare-and-swap (or the release store of `blocked`).
//
// Death of a client. It is either out of the queue, and nothing is left; or it is in line or on its way in or out, and the writer
// waits for it: for `blocked` to be cleared, or for `next` to be set. The writer is then the only one alive who knows this
// queue, and sets it to what it is when the writer alone holds it (repair). tests/model runs every interleaving of both sides, with
// the client's death before each of its steps.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv {

template <class Sync>
struct NMcs {
  using Word = typename Sync::Word;
  static constexpr const char* kName = "n-mcs";

  static constexpr std::uint64_t kNobody = 0, kClient = 1, kWriter = 2;
  struct Record {
    alignas(shm::kLineBytes) Word next;
    Word blocked;
  };
  struct Shared {};
  struct Client {
    alignas(shm::kLineBytes) Word head;
    Record records[2];
  };
  static void create(Shared&) {}
  static void create(Client& queue) {
    queue.head.store_relaxed(kNobody);
    for (Record& record : queue.records) {
      record.next.store_relaxed(kNobody);
      record.blocked.store_relaxed(0);
    }
  }

  template <class L>
  static Status enter(L& lock, Client& queue) {
    if (!line_up(queue, kClient)) return Status::ok;
    return lock.wait_for_writer([&] { return unblocked(queue, kClient); }) ? Status::ok : Status::peer_gone;
  }
  template <class L>
  static bool leave(L& lock, Client& queue) {
    if (!is_last(queue, kClient) && lock.wait_for_writer([&] { return linked(queue, kClient); })) unblock(queue, kWriter);
    return true;
  }

  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.seats(); ++i) line_up(lock.client(i), kWriter);
    for (unsigned i = 0; i < lock.seats(); ++i) {
      lock.wait_for_client(i, [&] { return unblocked(lock.client(i), kWriter); });
    }
  }
  template <class L>
  static void release(L& lock) {
    for (unsigned i = 0; i < lock.seats(); ++i) {
      Client& queue = lock.client(i);
      // Again where the one behind died on its way and was buried: another may have come to its seat already.
      while (!is_last(queue, kWriter)) {
        lock.wait_for_client(i, [&] { return linked(queue, kWriter); });
        if (!linked(queue, kWriter)) continue;
        unblock(queue, kClient);
        break;
      }
    }
  }

  template <class L>
  static void repair(L&, Client& queue) {
    for (Record& record : queue.records) {
      record.next.store_relaxed(kNobody);
      record.blocked.store_relaxed(0);
    }
    queue.head.store_relaxed(kWriter);
  }

 private:
  static Record& record(Client& queue, std::uint64_t index) { return queue.records[index - 1]; }

  // True if somebody is before us.
  static bool line_up(Client& queue, std::uint64_t me) {
    record(queue, me).next.store_relaxed(kNobody);
    const std::uint64_t before = queue.head.exchange(me);
    if (before == kNobody) return false;
    record(queue, me).blocked.store_relaxed(1);
    record(queue, before).next.store_release(me);  // pairs with linked(): `blocked` is set before it can be cleared
    return true;
  }
  static bool unblocked(Client& queue, std::uint64_t me) { return record(queue, me).blocked.load_acquire() == 0; }
  static bool is_last(Client& queue, std::uint64_t me) { return queue.head.compare_exchange(me, kNobody); }
  static bool linked(Client& queue, std::uint64_t me) { return record(queue, me).next.load_acquire() != kNobody; }
  static void unblock(Client& queue, std::uint64_t other) { record(queue, other).blocked.store_release(0); }
};

}  // namespace stretto::kv
