// SPDX-License-Identifier: BSD-3-Clause
// What a rank does while it waits in a call by schedule. It checks whether its peers on the node
// are still there. With STRETTO_WATCHDOG it also says for which ranks it waits, because no process
// on another node can read that. Private to src/engine.
#pragma once
#include "engine/scheduled.hpp"
#include "transport/stack.hpp"

namespace stretto::engine {

// One call that may not end.
class Stalled {
 public:
  // `number` counts the calls of the communicator that went by schedule.
  Stalled(const Scheduled& call, std::uint64_t number, const Watch& watch, transport::Stack& stack)
      : call_(call), number_(number), watch_(watch), stack_(stack) {}
  // What the execution calls while it waits.
  sched::Look look() {
    return {this, [](void* self, const sched::Execution& execution, std::uint64_t idle_ns) {
              static_cast<Stalled*>(self)->see(execution, idle_ns);
            }};
  }

 private:
  void see(const sched::Execution& execution, std::uint64_t idle_ns) {
    stack_.check_peers(idle_ns);
    if (told_ || watch_.limit_ns == 0 || idle_ns < watch_.limit_ns) return;
    told_ = true;
    tell(execution, idle_ns);
  }
  [[gnu::cold]] void tell(const sched::Execution& execution, std::uint64_t idle_ns) const;

  const Scheduled& call_;
  std::uint64_t number_;
  const Watch& watch_;
  transport::Stack& stack_;
  bool told_ = false;
};

}  // namespace stretto::engine
