// SPDX-License-Identifier: BSD-3-Clause
// What the lock schemes stand on. Each scheme is a template over this class, so that tests can
// replace it. One replacement ends the process at a chosen step. Another runs all interleavings of
// small programs (tests/kv).
#pragma once
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "shm/atomic.hpp"
#include "shm/waiter.hpp"
#include "sys/sys.hpp"

namespace stretto::kv {

// A process-shared mutex whose owner may die. Callers only try it and never sleep on it, so
// unlocking makes no system call.
class RobustMutex {
 public:
  enum class Try : std::uint8_t { busy, locked, inherited };  // inherited: locked, and its owner died holding it

  void init() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  Try try_lock() {
    const int error = pthread_mutex_trylock(&mutex_);
    if (error == 0) return Try::locked;
    if (error != EOWNERDEAD) return Try::busy;
    // Nothing needs repair: the dead owner only read what the mutex guards, or the whole lock ends
    // with its owner.
    pthread_mutex_consistent(&mutex_);
    return Try::inherited;
  }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

// The POSIX reader-writer lock. It prefers writers if told so. Nothing recovers it when its owner
// dies.
class PosixRwLock {
 public:
  void init() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  bool try_read() { return pthread_rwlock_tryrdlock(&lock_) == 0; }
  // Sleeps, so that readers see a waiting writer and let it pass.
  bool write_within(long nanoseconds) {
    timespec until{};
    clock_gettime(kClock, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1'000'000'000;
    until.tv_nsec %= 1'000'000'000;
#if defined(__SANITIZE_THREAD__)
    return pthread_rwlock_timedwrlock(&lock_, &until) == 0;
#else
    return pthread_rwlock_clockwrlock(&lock_, kClock, &until) == 0;
#endif
  }
  void unlock() { pthread_rwlock_unlock(&lock_); }

 private:
#if defined(__SANITIZE_THREAD__)
  static constexpr clockid_t kClock = CLOCK_REALTIME;  // TSan of GCC 12 does not know clockwrlock
#else
  static constexpr clockid_t kClock = CLOCK_MONOTONIC;
#endif
  pthread_rwlock_t lock_;
};

struct Machine {
  using Word = shm::Atomic<std::uint64_t>;
  using Mutex = RobustMutex;
  using RwLock = PosixRwLock;

  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  // A full fence after a read-modify-write access. On x86 that access is a full fence already.
  static void fence_after_exchange() {
#if defined(__x86_64__)
    std::atomic_signal_fence(std::memory_order_seq_cst);
#else
    fence();
#endif
  }
  static void fence_acquire() { std::atomic_thread_fence(std::memory_order_acquire); }
  // The cheap half of barrier_everywhere(). It only keeps the compiler from reordering.
  static void fence_light() { std::atomic_signal_fence(std::memory_order_seq_cst); }
  static bool barrier_register() { return sys::barrier_register() == 0; }
  static bool barrier_everywhere() { return sys::barrier_everywhere() == 0; }
  // Waits until all stores that other processors have made by now can be seen, without a barrier on
  // these processors. It waits several ticks of the slowest clock (100 Hz), and each tick empties a
  // processor's buffer if nothing has done so before. It is called at most once in a lock's life.
  static void let_stores_arrive() {
    constexpr std::uint64_t kLongEnoughNs = 50'000'000;
    const std::uint64_t end = sys::now_ns() + kLongEnoughNs;
    for (std::uint64_t now = sys::now_ns(); now < end; now = sys::now_ns()) sys::nap_ns(end - now);
  }

  // Identifies a process by its id and the low half of its start time. Another process that gets
  // the same id later is then not taken for it.
  static std::uint64_t identity() {
    const int pid = sys::process_id();
    return static_cast<std::uint64_t>(pid) << 32 | (sys::start_time(pid) & 0xffffffffu);
  }
  static bool gone(std::uint64_t identity) {
    return sys::process_gone(static_cast<int>(identity >> 32), identity & 0xffffffffu);
  }
  // Whether so many processes do not have a processor each.
  static bool crowded(unsigned processes) {
    const sys::Cpus cpus = sys::usable_cpus();
    return processes > cpus.count || processes > cpus.quota;
  }
  static std::uint64_t pid_namespace() { return sys::pid_namespace(); }

  // Waits until done(). Asks hopeless() ever more seldom, and returns false if it says that done()
  // will never hold.
  template <class Done, class Hopeless>
  static bool wait(const shm::WaitPolicy& policy, Done done, Hopeless hopeless) {
    if (done()) return true;
    shm::Waiter waiter(policy);
    for (;;) {
      const bool look = waiter.step();
      if (done()) return true;
      if (look && hopeless()) return done();
    }
  }
};

}  // namespace stretto::kv
