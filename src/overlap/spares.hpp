// SPDX-License-Identifier: BSD-3-Clause
// Spare memory for landings, used again. Any thread calls take() and give(), which take no lock.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sys/faults.hpp"

namespace stretto::overlap {

inline constexpr int kMostSpares = 16;

class Spares {
 public:
  struct Spare {
    std::atomic<bool> used{false};
    sys::Pages pages;
    std::atomic<std::uint8_t>* away = nullptr;  // one for each page
    bool stale = false;                         // to be mapped anew
  };

  // A part of a spare that lies in a huge page as `like` does. ENOMEM: more than `limit` bytes, or
  // the system has none.
  int take(const sys::Faults& faults, sys::Pages like, std::size_t limit, Spare** spare, sys::Pages* part);
  // A reusable one has no pages. The other kind is unmapped when it is taken next, because the
  // thread that gives it may not free memory.
  void give(Spare* spare, bool reusable);
  void unmap_all(const sys::Faults& faults);  // while nobody has one
  void free_states();                         // after that, when nothing is guarded any more
  // Threads that look at states of covers that are live, or were so when they began to look. take()
  // waits for them before it frees states.
  std::atomic<std::uint32_t> readers{0};
  [[nodiscard]] std::size_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }

 private:
  Spare* find(std::size_t bytes);
  int map(const sys::Faults& faults, Spare* spare, std::size_t bytes, std::size_t limit);
  void unmap(const sys::Faults& faults, Spare* spare);

  Spare spares_[kMostSpares];
  std::atomic<std::size_t> mapped_bytes_{0};
};

}  // namespace stretto::overlap
