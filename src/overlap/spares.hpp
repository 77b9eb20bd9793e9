// SPDX-License-Identifier: BSD-3-Clause
// Spare memory for landings, used again. Any thread calls take() and give(), which take no lock.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sys/faults.hpp"

namespace stretto::overlap {

inline constexpr int kMostSpares = 16;

// The pages of one huge page (guard.hpp).
struct HugeUnit {
  enum class State : std::uint8_t { small, held, open };
  State state = State::small;
  bool whole = false;           // all of it is guarded
  std::uint32_t ready = 0;      // held: pages that are complete
  std::uint64_t wanted_ns = 0;  // held: since when a thread waits; 0: none does
};

class Spares {
 public:
  struct Spare {
    std::atomic<bool> used{false};
    sys::Pages pages;
    std::atomic<std::uint8_t>* away = nullptr;  // one for each page
    HugeUnit* units = nullptr;                  // as many as a part can lie in
    bool stale = false;                         // to be mapped anew
    bool has_tables = false;                    // of small pages. The kernel then splits huge pages that move there.
  };

  // A part of a spare that lies in a huge page as `like` does. `for_huge`: one to which huge pages
  // can move. ENOMEM: more than `limit` bytes, or the system has none.
  int take(const sys::Faults& faults, sys::Pages like, bool for_huge, std::size_t limit, Spare** spare,
           sys::Pages* part);
  // A reusable one has no pages. The other kind is unmapped when it is taken next, because the
  // thread that gives it may not free memory.
  void give(Spare* spare, bool reusable);
  void unmap_all(const sys::Faults& faults);  // while nobody has one
  void free_states();                         // after that, when nothing is guarded any more
  // Threads that look at states of covers that are live, or were so when they began to look. take()
  // waits for them before it frees states.
  std::atomic<std::uint32_t> readers{0};

 private:
  Spare* find(std::size_t bytes);
  int map(const sys::Faults& faults, Spare* spare, std::size_t bytes, std::size_t limit);
  void unmap(const sys::Faults& faults, Spare* spare);

  Spare spares_[kMostSpares];
  std::atomic<std::size_t> mapped_bytes_{0};
};

}  // namespace stretto::overlap
