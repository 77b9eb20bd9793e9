// SPDX-License-Identifier: BSD-3-Clause
#include "shm/wait.hpp"

namespace stretto::shm {

void Waiter::drive(std::uint32_t times) {
  for (std::uint32_t i = 0; i < times && policy_.poke; ++i) policy_.poke(policy_.host);
}

void Waiter::linger() {
  // Hosts yield the processor themselves in an idle poke: where processors are short, not at every step.
  if (policy_.poke && steps_ % policy_.poke_every == 0) policy_.poke(policy_.host);
  const std::uint64_t now = sys::now_ns();
  if (since_ns_ == 0) since_ns_ = now;
  const std::uint64_t waited = now - since_ns_;
  if (waited < policy_.yield_after_ns) {
    sys::cpu_relax();
  } else if (waited < policy_.nap_after_ns) {
    sys::thread_yield();
  } else {
    drive(kProfile.pokes_per_nap);
    const std::uint64_t part = waited / kProfile.nap_fraction;
    sys::nap_ns(part < kProfile.nap_limit_ns ? part : kProfile.nap_limit_ns);
  }
}

}  // namespace stretto::shm
