// SPDX-License-Identifier: BSD-3-Clause
#include "shm/waiter.hpp"

namespace stretto::shm {

// A poke that finds nothing takes about the same time again and again. A poke that moved something
// takes longer: the host serves a peer step by step. The next step then comes within microseconds,
// which leaves no time for a nap. But a poke may also take longer because another thread is at the
// host, perhaps on the same processor. A rank that naps gets the processor back sooner than a rank
// that yields. So a nap comes now and then in any case.
std::uint64_t Waiter::drive(std::uint64_t now) {
  policy_.poke(policy_.host);
  const std::uint64_t after = policy_.system->now_ns();
  const std::uint64_t took = after - now;
  if (took < idle_poke_ns_) idle_poke_ns_ = took;
  if (took > 2 * idle_poke_ns_ + kTuning.poke_moved_ns) asked_until_ns_ = after + kTuning.serve_ns;
  return after;
}

// Some hosts yield the processor themselves in an idle poke. That costs a short wait a round of all
// ranks. In a long wait a peer may wait for the host: the rank then drives it at every step.
std::uint32_t Waiter::steps_per_poke(bool is_old, bool serves_windows) const {
  if (is_old || (serves_windows && steps_ > policy_.spins)) return 1;
  const bool is_seldom = steps_ < policy_.seldom_until && policy_.poke_every < kTuning.crowded_steps_per_poke;
  return is_seldom ? kTuning.crowded_steps_per_poke : policy_.poke_every;
}

void Waiter::yield(std::uint32_t steps_per_yield) {
  if (steps_ % steps_per_yield == 0) policy_.system->yield();
}

void Waiter::nap() {
  const std::uint64_t part = waited_ns_ / kTuning.nap_fraction;
  policy_.system->nap_ns(part < kTuning.nap_limit_ns ? part : kTuning.nap_limit_ns);
  // The first one is slow, whatever it finds: caches are cold.
  if (policy_.poke) policy_.poke(policy_.host);
  nap_due_ns_ = policy_.system->now_ns() + kTuning.serve_limit_ns;
  steps_since_nap_ = 0;
}

void Waiter::relax(std::uint64_t now, bool serves_windows) {
  if (waited_ns_ < policy_.yield_after_ns || serves_windows || serves(now)) return sys::cpu_relax();
  if (waited_ns_ < policy_.nap_after_ns) {
    // A host that spins keeps the processor that we yield for a whole time slice. A rank that owes
    // it many steps takes some at once.
    return yield(waited_ns_ >= kTuning.long_wait_ns ? kTuning.long_wait_steps_per_yield : 1);
  }
  // Between two pokes the rank only looks. Where the host yields in each of them, every rank of the
  // node has had its turn meanwhile.
  if (!policy_.poke || ++steps_since_nap_ >= kTuning.pokes_per_nap) nap();
}

bool Waiter::linger() {
  const bool is_old = waited_ns_ >= policy_.nap_after_ns, serves_windows = policy_.serves_windows();
  const bool pokes = policy_.poke && steps_ % steps_per_poke(is_old, serves_windows) == 0;
  // Only a rank that naps needs to know what a poke was good for.
  if (pokes && !is_old) policy_.poke(policy_.host);
  std::uint64_t now = policy_.system->now_ns();
  if (pokes && is_old) now = drive(now);
  if (since_ns_ == 0) begin(now);
  const std::uint64_t waited = waited_ns_ = now - since_ns_;
  relax(now, serves_windows);
  if (waited < look_at_ns_) return false;
  look_at_ns_ = waited + (waited < policy_.look_every_ns ? waited : policy_.look_every_ns);
  return true;
}

}  // namespace stretto::shm
