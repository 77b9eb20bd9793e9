// SPDX-License-Identifier: BSD-3-Clause
// How schemes wait for a client's mutex. A mutex has no queue, so a reader that comes back fast
// could keep the writer out for ever. A writer that has tried kTries times therefore sets
// writer_priority. Readers stay away from mutexes until it is cleared.
//
// A reader that dies holding a mutex leaves it to the writer, by the kernel's list of robust
// mutexes. Nothing needs repair. A reader that inherits a mutex inherits it from the writer: a dead
// client's entry is free only after the writer has held its mutexes. The writer's death ends the
// lock. The mutex stays locked, so that later readers do not get in either.
#pragma once
#include "kv/lock/lock.hpp"

namespace stretto::kv::mutexes {

// The reader takes a mutex. It asks `open()` before each try, and tries only if that is true.
template <class L, class Mutex, class Open>
Status reader_lock(L& lock, Mutex& mutex, Open open) {
  using Try = typename Mutex::Try;
  Try tried = Try::busy;
  const bool locked = lock.wait_for_writer([&] {
    tried = open() ? mutex.try_lock() : Try::busy;
    return tried != Try::busy;
  });
  if (!locked) return Status::peer_gone;
  return tried == Try::inherited ? Status::peer_gone : Status::ok;
}

template <class L, class Mutex>
Status reader_lock(L& lock, Mutex& mutex) {
  return reader_lock(lock, mutex, [&] { return lock.writer_priority().load_relaxed() == 0; });
}

// The tries until the writer sets writer_priority, before it first gives the processor away.
inline constexpr unsigned kTries = 16;

// The writer takes a client's mutex. If the client dies, the wait ends, because the writer inherits
// the mutex.
template <class L, class Mutex>
void writer_lock(L& lock, unsigned client, Mutex& mutex) {
  unsigned tries = 0;
  lock.wait_for_client(client, [&] {
    if (++tries == kTries) lock.writer_priority().store_relaxed(1);
    return mutex.try_lock() != Mutex::Try::busy;
  });
}

template <class L>
void brake_off(L& lock) {
  if (lock.writer_priority().load_relaxed() != 0) lock.writer_priority().store_relaxed(0);
}

}  // namespace stretto::kv::mutexes
