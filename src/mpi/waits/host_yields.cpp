// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/waits/host_yields.hpp"

#include <algorithm>

#include "base/tuning.hpp"

namespace stretto::mpi {

HostYields::Watched::Watched(HostYields& yields) : yields_(yields.watch_next() ? &yields : nullptr) {
  if (yields_ == nullptr) return;
  begin_ns_ = sys::now_ns();
  begin_ = sys::thread_use();
}

HostYields::Watched::~Watched() {
  if (yields_ == nullptr) return;
  const sys::ThreadUse end = sys::thread_use();
  yields_->add(sys::now_ns() - begin_ns_, end.processor_ns - begin_.processor_ns, end.switches - begin_.switches);
}

// To watch a call takes half a microsecond, and to ask for the tick takes a hundredth of that. So
// only some of many short calls are watched.
bool HostYields::watch_next() {
  if (are_known()) return false;
  const std::uint32_t call = calls_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t tick = sys::tick_ns();
  if (tick != tick_ns_.load(std::memory_order_relaxed)) {
    tick_ns_.store(tick, std::memory_order_relaxed);
    watched_until_.store(call + kTuning.kind_watched_per_tick, std::memory_order_relaxed);
  }
  return call < watched_until_.load(std::memory_order_relaxed) || call % kTuning.kind_watched_every == 0;
}

// A thread that yields leaves the processor many times, after some microseconds each. A thread that
// spins leaves it rarely. Others then keep it as long as itself, or only until they wait, too.
void HostYields::add(std::uint64_t wall_ns, std::uint64_t used_ns, std::uint64_t switches) {
  if (switches == 0) return;
  const std::uint64_t used = used_ns_.fetch_add(used_ns, std::memory_order_relaxed) + used_ns;
  const std::uint64_t lost_now = wall_ns - std::min(used_ns, wall_ns);
  const std::uint64_t lost = lost_ns_.fetch_add(lost_now, std::memory_order_relaxed) + lost_now;
  const std::uint64_t left = switches_.fetch_add(switches, std::memory_order_relaxed) + switches;
  const std::uint32_t held_now = used_ns > switches * kTuning.kind_most_held_ns ? 1 : 0;
  const std::uint32_t held = held_.fetch_add(held_now, std::memory_order_relaxed) + held_now;
  const bool holds = used > left * kTuning.kind_most_held_ns;
  const bool soon = held >= kTuning.kind_held_calls || std::min(used, lost) > kTuning.kind_held_ns;
  if (left < kTuning.kind_switches && !(holds && soon)) return;
  verdict_.store(holds ? Verdict::hold : Verdict::yield, std::memory_order_relaxed);
}

}  // namespace stretto::mpi
