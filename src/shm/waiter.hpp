// SPDX-License-Identifier: BSD-3-Clause
// How a rank waits: it spins, then yields, then naps, and keeps the host MPI moving all the time
// (ARCHITECTURE.md, invariant 8).
//
// A Waiter belongs to one wait. Its first steps only look again. After them every step drives the
// host's progress engine. For a rank that waits in our Barrier may owe another rank the rest of a
// rendezvous or a one-sided reply. No rank wakes another: a futex would need a store-load fence at
// every publish.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/tuning.hpp"
#include "shm/ledger.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {

// What a wait asks of the system. Tests put a clock of their own here.
struct WaitSystem {
  std::uint64_t (*now_ns)() = &sys::now_ns;
  void (*yield)() = &sys::thread_yield;
  void (*nap_ns)(std::uint64_t) = &sys::nap_ns;
};
inline constexpr WaitSystem kWaitSystem{};

struct WaitPolicy {
  std::uint32_t bare_spins = kTuning.spin_bare;
  std::uint32_t spins = kTuning.spin_total;
  std::uint64_t yield_after_ns = kTuning.spin_yield_after_ns;
  std::uint64_t nap_after_ns = kTuning.nap_after_ns;
  void* host = nullptr;
  void (*poke)(void* host) = nullptr;
  std::uint32_t poke_every = 1;
  // Set and not 0: the process has windows, so peers may wait for one-sided calls that the host
  // serves in a poke.
  const std::atomic<int>* has_windows = nullptr;
  // Lets the thread say from which line of source its call comes (call_sites.hpp).
  void* locator = nullptr;
  void (*locate)(void* locator) = nullptr;
  Activity* activity = nullptr;  // where observers see that this process waits
  // up to this step the host is driven seldom: processors are short
  std::uint32_t seldom_until = 0;
  // At the latest after this time, the rank checks again whether the wait can end.
  std::uint64_t look_every_ns = kTuning.look_every_ns;
  const WaitSystem* system = &kWaitSystem;

  // With a processor for every rank, a process with windows serves its peers as the host's own wait
  // does. It drives the host at every step, and neither yields nor naps. A process that yields to a
  // program that computes is away for a whole time slice.
  [[nodiscard]] bool serves_windows() const {
    return has_windows != nullptr && seldom_until == 0 && has_windows->load(std::memory_order_relaxed) != 0;
  }

  // For fewer processors than waiting ranks: the rank gives its processor away after a few looks.
  void crowd() {
    seldom_until = kTuning.crowded_seldom_until;
    bare_spins = spins = kTuning.crowded_spins;
    yield_after_ns = 0;
  }
};

class Waiter {
 public:
  explicit Waiter(const WaitPolicy& policy) : policy_(policy) {}
  ~Waiter() { over(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // True when it is time to check whether the wait can end at all.
  bool step() {
    ++steps_;
    if (steps_ <= policy_.bare_spins) return false;
    if (steps_ <= policy_.spins && !policy_.serves_windows()) {
      sys::cpu_relax();
      return false;
    }
    return linger();
  }
  [[nodiscard]] std::uint64_t waited_ns() const { return waited_ns_; }

  // The host is driven and the clock is read at every further step.
  [[nodiscard]] bool is_long() const { return steps_ > policy_.spins; }

  // Something moved: the next steps look again quickly.
  void moved() {
    over();
    steps_ = 0;
    since_ns_ = 0;
    look_at_ns_ = kTuning.look_first_ns;
  }

 private:
  bool linger();
  void begin(std::uint64_t now_ns) {
    since_ns_ = now_ns;
    if (policy_.activity) policy_.activity->waiting_since_ns.store_relaxed(now_ns);
  }
  void over() {
    if (since_ns_ != 0 && policy_.activity) policy_.activity->waiting_since_ns.store_relaxed(0);
  }
  [[nodiscard]] std::uint32_t steps_per_poke(bool is_old, bool serves_windows) const;
  void relax(std::uint64_t now, bool serves_windows);
  void yield(std::uint32_t steps_per_yield);
  void nap();
  std::uint64_t drive(std::uint64_t now);  // returns the time afterwards
  // A peer wants something step by step. Where processors are short, a poke takes longer because it
  // yields, too.
  [[nodiscard]] bool is_asked(std::uint64_t now) const { return now < asked_until_ns_ && policy_.seldom_until == 0; }
  [[nodiscard]] bool serves(std::uint64_t now) const { return is_asked(now) && now < nap_due_ns_; }

  const WaitPolicy& policy_;
  std::uint32_t steps_ = 0;
  std::uint32_t steps_since_nap_ = 0;  // of those that nap and find no peer to serve
  std::uint64_t since_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
  std::uint64_t look_at_ns_ = kTuning.look_first_ns;
  std::uint64_t idle_poke_ns_ = ~std::uint64_t{0};  // the shortest of this wait
  std::uint64_t asked_until_ns_ = 0;
  std::uint64_t nap_due_ns_ = 0;  // set by the first nap
};

}  // namespace stretto::shm
