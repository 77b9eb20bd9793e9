// SPDX-License-Identifier: BSD-3-Clause
// A lock in shared memory and a crew of forked processes that use it, for measurements and tests.
#pragma once
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#include "kv/lock/schemes.hpp"

namespace stretto::kv::bench {

using Word = shm::Atomic<std::uint64_t>;

// Zeroed memory that is shared with children.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    base_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base_ == MAP_FAILED) {
      std::perror("mmap");
      std::abort();
    }
  }
  ~Memory() { munmap(base_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] void* base() const { return base_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* base_;
  std::size_t bytes_;
};

template <class T>
class Shared {
 public:
  Shared() : memory_(sizeof(T)), value_(new (memory_.base()) T{}) {}
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  Memory memory_;
  T* value_;
};

// The writer's view, and the memory that clients attach to.
template <template <class> class Scheme>
class LockMemory {
 public:
  explicit LockMemory(unsigned clients) : memory_(Lock<Scheme>::bytes(clients)) {
    writer_.create(memory_.base(), clients);
  }
  Lock<Scheme>& writer() { return writer_; }
  // A client's view, which has joined. If that fails, it prints why and ends the process.
  template <class Sync = Machine>
  Lock<Scheme, Sync> client(std::uint64_t patience_ns = 5'000'000'000) {
    Lock<Scheme, Sync> lock;
    if (lock.attach(memory_.base(), memory_.bytes()) != Status::ok || lock.join(patience_ns) != Status::ok) {
      std::fprintf(stderr, "%s: a client found no seat\n", Scheme<Machine>::kName);
      _exit(3);
    }
    return lock;
  }
  void* base() { return memory_.base(); }
  std::size_t bytes() { return memory_.bytes(); }

 private:
  Memory memory_;
  Lock<Scheme> writer_;
};

// Children. They are waited for, or killed at the end.
class Crew {
 public:
  ~Crew() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    (void)wait();
  }
  template <class Body>
  pid_t add(Body body) {
    const pid_t pid = fork();
    if (pid == 0) {
      body();
      _exit(0);
    }
    pids_.push_back(pid);
    return pid;
  }
  // True if all ended with status 0.
  bool wait() {
    bool good = true;
    for (const pid_t pid : pids_) good &= status_of(pid) == 0;
    pids_.clear();
    return good;
  }
  static int status_of(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
      if (errno != EINTR) return -1;
    }
    return status;
  }

 private:
  std::vector<pid_t> pids_;
};

inline void wait_until_at_least(const Word& word, std::uint64_t value) {
  while (word.load_acquire() < value) sys::thread_yield();
}

// Adds to a counter that many processes add to.
inline void add(Word& word, std::uint64_t n = 1) {
  for (std::uint64_t seen = word.load_relaxed(); !word.compare_exchange(seen, seen + n); seen = word.load_relaxed()) {
  }
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t operator()() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  // Delays as a program would: mostly for a moment, now and then without the processor.
  void delay() {
    const std::uint64_t draw = (*this)();
    if (draw % 256 == 0) return sys::thread_yield();
    for (std::uint64_t i = draw >> 8 & 63; i > 0; --i) sys::cpu_relax();
  }

 private:
  std::uint64_t state_;
};

}  // namespace stretto::kv::bench
