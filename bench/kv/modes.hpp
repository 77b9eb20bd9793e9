// SPDX-License-Identifier: BSD-3-Clause
// S3's three modes. Sections are as there: empty but for a counter that the writer changes.
#pragma once
#include "crew.hpp"

namespace stretto::kv::bench {

struct Sample {
  double locks_per_s = 0;        // read, concurrent: of all readers together; write: of the writer
  double write_acquire_us = 0;   // mean; 0 where nobody writes
};

struct ModeBoard {
  alignas(shm::kLineBytes) Word ready;
  alignas(shm::kLineBytes) Word stop;
  alignas(shm::kLineBytes) Word counter;
  alignas(shm::kLineBytes) Word locks;
  alignas(shm::kLineBytes) Word busy_ns;  // of all readers together
};

// Clients that read as fast as they can from `go` until `stop`.
template <template <class> class Scheme>
void raise_readers(Crew& crew, LockMemory<Scheme>& memory, ModeBoard& board, unsigned clients) {
  for (unsigned i = 0; i < clients; ++i) {
    crew.add([&] {
      auto lock = memory.client();
      add(board.ready);
      wait_until_at_least(board.ready, clients + 1);
      const std::uint64_t begin = sys::now_ns();
      std::uint64_t sections = 0, seen = 0;
      while (board.stop.load_relaxed() == 0) {
        for (int k = 0; k < 16; ++k) {
          if (lock.read([&] { seen = board.counter.load_relaxed(); }) != Status::ok) _exit(4);
          asm volatile("" : : "r"(seen));
        }
        sections += 16;
      }
      add(board.busy_ns, sys::now_ns() - begin);
      add(board.locks, sections);
    });
  }
  wait_until_at_least(board.ready, clients);
}

inline double rate_of(ModeBoard& board, unsigned clients) {
  const double seconds = static_cast<double>(board.busy_ns.load_relaxed()) / clients / 1e9;
  return static_cast<double>(board.locks.load_relaxed()) / seconds;
}

template <template <class> class Scheme>
Sample read_only(unsigned clients, std::uint64_t length_ns) {
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
  Crew crew;
  raise_readers<Scheme>(crew, memory, *board, clients);
  add(board->ready);
  sys::nap_ns(length_ns);
  board->stop.store_release(1);
  if (!crew.wait()) std::exit(4);
  return {rate_of(*board, clients), 0};
}

template <template <class> class Scheme>
Sample write_only(unsigned clients, std::uint64_t length_ns) {
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
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

// 100 writes, 10 us apart, while the readers hammer.
template <template <class> class Scheme>
Sample concurrent(unsigned clients, std::uint64_t) {
  constexpr int kWrites = 100;
  constexpr std::uint64_t kPauseNs = 10'000;
  LockMemory<Scheme> memory(clients);
  Shared<ModeBoard> board;
  Crew crew;
  raise_readers<Scheme>(crew, memory, *board, clients);
  add(board->ready);
  std::uint64_t acquiring_ns = 0;
  for (int w = 0; w < kWrites; ++w) {
    const std::uint64_t begin = sys::now_ns();
    memory.writer().write_enter();
    acquiring_ns += sys::now_ns() - begin;
    board->counter.store_relaxed(static_cast<std::uint64_t>(w));
    memory.writer().write_leave();
    sys::nap_ns(kPauseNs);
  }
  board->stop.store_release(1);
  if (!crew.wait()) std::exit(4);
  return {rate_of(*board, clients), static_cast<double>(acquiring_ns) / kWrites / 1e3};
}

}  // namespace stretto::kv::bench
