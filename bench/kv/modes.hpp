// SPDX-License-Identifier: BSD-3-Clause
// S3's three modes. As there, sections are empty but for a counter that the writer changes.
#pragma once
#include <sched.h>

#include "crew.hpp"

namespace stretto::kv::bench {

struct Sample {
  // Read, concurrent: of all readers together. Write: of the writer.
  double locks_per_s = 0;
  double write_acquire_us = 0;  // mean; 0 where there is no writer
};

struct ModeBoard {
  alignas(shm::kLineBytes) Word ready;
  alignas(shm::kLineBytes) Word stop;
  alignas(shm::kLineBytes) Word counter;
  alignas(shm::kLineBytes) Word locks;  // of all readers together
};

// The processors of this process, and of all that it forks, while none is bound yet.
inline const cpu_set_t& processors() {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return all;
}

// Binds each process to a processor, if there are enough (S3 binds to cores). The writer has the
// first.
inline void bind(unsigned process, unsigned processes) {
  const cpu_set_t& all = processors();
  if (processes > static_cast<unsigned>(CPU_COUNT(&all))) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && process-- == 0) CPU_SET(cpu, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

// Binds the writer to its processor, as long as this object lives. Clients that are forked
// meanwhile still bind themselves to others.
class Bound {
 public:
  explicit Bound(unsigned clients) { bind(0, clients + 1); }
  ~Bound() { sched_setaffinity(0, sizeof(cpu_set_t), &processors()); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
};

// Starts clients that read as fast as they can, from the common start until `stop`.
template <template <class> class Scheme>
void raise_readers(Crew& crew, LockMemory<Scheme>& memory, ModeBoard& board, unsigned clients) {
  for (unsigned i = 0; i < clients; ++i) {
    crew.add([&, i] {
      bind(i + 1, clients + 1);
      auto lock = memory.client();
      add(board.ready);
      wait_until_at_least(board.ready, clients + 1);
      std::uint64_t sections = 0, seen = 0;
      while (board.stop.load_relaxed() == 0) {
        for (int k = 0; k < 16; ++k) {
          if (lock.read([&] { seen = board.counter.load_relaxed(); }) != Status::ok) _exit(4);
          asm volatile("" : : "r"(seen));
        }
        sections += 16;
      }
      add(board.locks, sections);
    });
  }
  wait_until_at_least(board.ready, clients);
}

// Starts them, does `meanwhile`, stops them. Returns their locks per second, all together.
template <class Meanwhile>
double locks_per_s(Crew& crew, ModeBoard& board, Meanwhile meanwhile) {
  const std::uint64_t begin = sys::now_ns();
  add(board.ready);
  meanwhile();
  board.stop.store_release(1);
  const std::uint64_t end = sys::now_ns();
  if (!crew.wait()) std::exit(4);
  return static_cast<double>(board.locks.load_relaxed()) / static_cast<double>(end - begin) * 1e9;
}

template <template <class> class Scheme>
Sample read_only(unsigned clients, std::uint64_t length_ns) {
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
  Crew crew;
  raise_readers<Scheme>(crew, memory, *board, clients);
  return {locks_per_s(crew, *board, [&] { sys::nap_ns(length_ns); }), 0};
}

template <template <class> class Scheme>
Sample write_only(unsigned clients, std::uint64_t length_ns) {
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
  const Bound bound(0);
  std::uint64_t writes = 0;
  const std::uint64_t begin = sys::now_ns();
  std::uint64_t now = begin;
  while (now - begin < length_ns) {
    for (int k = 0; k < 16; ++k) {
      memory.writer().write_enter();
      board->counter.store_relaxed(++writes);
      memory.writer().write_leave();
    }
    now = sys::now_ns();
  }
  const double seconds = static_cast<double>(now - begin) / 1e9;
  return {static_cast<double>(writes) / seconds, seconds * 1e6 / static_cast<double>(writes)};
}

// 100 writes, 10 us apart, while the readers read as fast as they can.
template <template <class> class Scheme>
Sample concurrent(unsigned clients, std::uint64_t) {
  constexpr int kWrites = 100;
  constexpr std::uint64_t kPauseNs = 10'000;
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
  const Bound bound(clients);
  Crew crew;
  raise_readers<Scheme>(crew, memory, *board, clients);
  std::uint64_t acquiring_ns = 0;
  const double rate = locks_per_s(crew, *board, [&] {
    for (int w = 0; w < kWrites; ++w) {
      const std::uint64_t begin = sys::now_ns();
      memory.writer().write_enter();
      acquiring_ns += sys::now_ns() - begin;
      board->counter.store_relaxed(static_cast<std::uint64_t>(w));
      memory.writer().write_leave();
      sys::nap_ns(kPauseNs);
    }
  });
  return {rate, static_cast<double>(acquiring_ns) / kWrites / 1e3};
}

}  // namespace stretto::kv::bench
