// SPDX-License-Identifier: BSD-3-Clause
#include "shm/wait.hpp"

namespace stretto::shm {

// A poke that finds nothing takes about the same time again and again; one that moved something takes longer. Somebody is
// then being served step by step, and the next step comes within microseconds: no time for a nap. But a poke may take longer
// because another thread is at the host, too, perhaps on the same processor, and who naps gets that back sooner than who yields
// it: a nap comes now and then in any case.
std::uint64_t Waiter::drive(std::uint64_t now) {
  policy_.poke(policy_.host);
  const std::uint64_t after = sys::now_ns();
  const std::uint64_t took = after - now;
  if (took < idle_poke_ns_) idle_poke_ns_ = took;
  if (took > 2 * idle_poke_ns_ + kProfile.poke_moved_ns) asked_until_ns_ = after + kProfile.serve_ns;
  return after;
}

bool Waiter::linger() {
  // Some hosts yield the processor themselves in an idle poke, which costs a short wait a round of all ranks. A long wait
  // may be for somebody who waits for the host: then it is driven at every step.
  const std::uint32_t every = steps_ < policy_.seldom_until && policy_.poke_every < kProfile.crowded_steps_per_poke
                                  ? kProfile.crowded_steps_per_poke
                                  : policy_.poke_every;
  // Only who naps wants to know what a poke was good for.
  const bool pokes = policy_.poke && steps_ % every == 0, is_old = waited_ns_ >= policy_.nap_after_ns;
  if (pokes && !is_old) policy_.poke(policy_.host);
  std::uint64_t now = sys::now_ns();
  if (pokes && is_old) now = drive(now);
  if (since_ns_ == 0) begin(now);
  const std::uint64_t waited = waited_ns_ = now - since_ns_;
  if (waited < policy_.yield_after_ns || serves(now)) {
    sys::cpu_relax();
  } else if (waited < policy_.nap_after_ns) {
    // A host that spins keeps the processor we yield for a whole time slice: who owes it many steps takes some at once.
    const bool is_long = waited >= kProfile.long_wait_ns;
    if (!is_long || steps_ % kProfile.long_wait_steps_per_yield == 0) sys::thread_yield();
  } else {
    for (std::uint32_t i = 0; i < kProfile.pokes_per_nap && policy_.poke && !is_asked(now); ++i) now = drive(now);
    const std::uint64_t part = waited / kProfile.nap_fraction;
    if (!serves(now)) {
      sys::nap_ns(part < kProfile.nap_limit_ns ? part : kProfile.nap_limit_ns);
      if (policy_.poke) policy_.poke(policy_.host);  // the first one is slow, whatever it finds: caches are cold
      nap_due_ns_ = sys::now_ns() + kProfile.serve_limit_ns;
    }
  }
  if (waited < look_at_ns_) return false;
  look_at_ns_ = waited + (waited < policy_.look_every_ns ? waited : policy_.look_every_ns);
  return true;
}

}  // namespace stretto::shm
