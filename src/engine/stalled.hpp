// SPDX-License-Identifier: BSD-3-Clause
// STRETTO_WATCHDOG for calls by schedule: the rank that waits says whom for, since nobody on another node can read that. Private to
// src/engine.
#pragma once
#include "engine/scheduler.hpp"

namespace stretto::engine {

// One call that may not end.
class Stalled {
 public:
  // `number`: of the call, among those of its communicator that went by schedule.
  Stalled(const Scheduled& call, std::uint64_t number, const Watch& watch) : call_(call), number_(number), watch_(watch) {}
  // What the execution is to call while it waits.
  sched::Look look() { return {this, [](void* self, const sched::Execution& execution, std::uint64_t idle_ns) {
                                 static_cast<Stalled*>(self)->see(execution, idle_ns);
                               }}; }

 private:
  void see(const sched::Execution& execution, std::uint64_t idle_ns) {
    if (told_ || idle_ns < watch_.limit_ns) return;
    told_ = true;
    tell(execution, idle_ns);
  }
  [[gnu::cold]] void tell(const sched::Execution& execution, std::uint64_t idle_ns) const;

  const Scheduled& call_;
  std::uint64_t number_;
  const Watch& watch_;
  bool told_ = false;
};

}  // namespace stretto::engine
