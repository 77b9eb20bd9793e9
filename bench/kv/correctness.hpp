// SPDX-License-Identifier: BSD-3-Clause
// Whether a scheme is a reader-writer lock at all, tried with processes and random delays.
// - Readers meet inside the section: all of them are in at once. A plain mutex fails this.
// - The writer is alone: it changes two words one after the other, and no reader sees them differ.
//   A lock that does
// nothing fails this.
// - Counters are exact: no section is lost or run too often.
#pragma once
#include <string>

#include "crew.hpp"

namespace stretto::kv::bench {

struct Trial {
  unsigned clients = 2;
  std::uint64_t sections = 10'000;  // of all readers together, at least
  std::uint64_t seed = 1;
  std::uint64_t meeting_ns = 2'000'000'000;  // readers that have not met by then never will
};

struct CheckBoard {
  alignas(shm::kLineBytes) Word ready, met, torn, refused, sections;
  alignas(shm::kLineBytes) Word inside;
  alignas(shm::kLineBytes) Word first;
  alignas(shm::kLineBytes) Word second;
  alignas(shm::kLineBytes) Word finished;
};

// All readers are inside together, or not within the time.
template <class L>
void meet(L& lock, CheckBoard& board, const Trial& trial) {
  bool met = false;
  const Status status = lock.read([&] {
    add(board.inside);
    const std::uint64_t begin = sys::now_ns();
    while (!(met = board.inside.load_acquire() >= trial.clients) && sys::now_ns() - begin < trial.meeting_ns)
      sys::thread_yield();
  });
  if (status == Status::ok && met) add(board.met);
}

template <class L>
void read_often(L& lock, CheckBoard& board, const Trial& trial, Random random) {
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < trial.sections / trial.clients; ++i) {
    std::uint64_t a = 0, b = 0, again = 0;
    const Status status = lock.read([&] {
      a = board.first.load_relaxed();
      random.delay();
      b = board.second.load_relaxed();
      again = board.first.load_relaxed();
    });
    if (status != Status::ok) add(board.refused);
    if (a != b || a != again || a < last) add(board.torn);
    last = a;
    add(board.sections);
    random.delay();
  }
}

// What is wrong with the scheme. Empty: nothing was found.
template <template <class> class Scheme>
std::string check(const Trial& trial) {
  LockMemory<Scheme> memory(trial.clients);
  Shared<CheckBoard> board;
  Crew crew;
  for (unsigned i = 0; i < trial.clients; ++i) {
    crew.add([&, i] {
      auto lock = memory.client();
      add(board->ready);
      wait_until_at_least(board->ready, trial.clients);
      meet(lock, *board, trial);
      add(board->ready);
      wait_until_at_least(board->ready, 2 * trial.clients + 1);
      read_often(lock, *board, trial, Random(trial.seed + i));
      lock.leave();
      add(board->finished);
    });
  }
  wait_until_at_least(board->ready, 2 * trial.clients);
  add(board->ready);
  Random random(trial.seed + trial.clients);
  std::uint64_t writes = 0;
  while (board->finished.load_acquire() < trial.clients) {
    memory.writer().write_enter();
    board->first.store_relaxed(++writes);
    random.delay();
    board->second.store_relaxed(board->second.load_relaxed() + 1);
    memory.writer().write_leave();
    for (int i = 0; i < 16; ++i) random.delay();
  }
  const bool ended_well = crew.wait();
  if (board->met.load_relaxed() != trial.clients) return "readers do not meet inside the section";
  if (board->torn.load_relaxed() != 0)
    return "readers saw half of a change, " + std::to_string(board->torn.load_relaxed()) + " times";
  if (board->refused.load_relaxed() != 0) return "readers were refused";
  if (board->first.load_relaxed() != writes || board->second.load_relaxed() != writes)
    return "the writer's counters are not exact";
  if (board->sections.load_relaxed() != trial.sections / trial.clients * trial.clients)
    return "the readers' counters are not exact";
  return ended_well ? "" : "a reader ended badly";
}

// ---- Locks that are none, which the check must find out ----
template <class Sync>
struct Dummy {
  static constexpr const char* kName = "dummy";
  struct Shared {};
  struct Client {};
  static void create(Shared&) {}
  static void create(Client&) {}
  template <class L>
  static Status enter(L&, Client&) {
    return Status::ok;
  }
  template <class L>
  static bool leave(L&, Client&) {
    return true;
  }
  template <class L>
  static void acquire(L&) {}
  template <class L>
  static void release(L&) {}
  template <class L>
  static void repair(L&, Client&) {}
};

template <class Sync>
struct PlainMutex : Dummy<Sync> {
  static constexpr const char* kName = "mutex";
  struct Shared {
    alignas(shm::kLineBytes) typename Sync::Mutex mutex;
  };
  struct Client {};
  static void create(Shared& shared) { shared.mutex.init(); }
  static void create(Client&) {}
  template <class L>
  static Status enter(L& lock, Client&) {
    acquire(lock);
    return Status::ok;
  }
  template <class L>
  static bool leave(L& lock, Client&) {
    release(lock);
    return true;
  }
  template <class L>
  static void acquire(L& lock) {
    while (lock.shared().mutex.try_lock() == Sync::Mutex::Try::busy) sys::thread_yield();
  }
  template <class L>
  static void release(L& lock) {
    lock.shared().mutex.unlock();
  }
  template <class L>
  static void repair(L&, Client&) {}
};

}  // namespace stretto::kv::bench
