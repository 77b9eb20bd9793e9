// SPDX-License-Identifier: BSD-3-Clause
// The route of a blocking call by schedule: over the transport, or by the driver of calls that
// return early.
#pragma once
#include "engine/prepared.hpp"
#include "mpi/calls/route.hpp"
#include "mpi/comm/schedules.hpp"

namespace stretto::mpi {

class RouteSchedule : public BlockingRoute {
 public:
  using BlockingRoute::BlockingRoute;

  [[nodiscard]] Overlap* overlap(std::uint64_t bytes) const {
    Overlap& overlap = schedules_overlap(*call().state->schedules);
    return overlap.takes(call().collective(), bytes) ? &overlap : nullptr;
  }

  void leaves_overlap(const char* why) const {
    schedules_overlap(*call().state->schedules).leaves(call().collective(), why);
  }

  // As RouteEngine::run(). The part `run(prepared, good)` prepares the call. Returns false, too, if
  // schedules leave the call to the host, or to shared memory.
  template <class Run, class... Buffers>
  bool run(const Arguments& arguments, Run run, Buffers&... buffers) const {
    const State& state = *call().state;
    const bool broken = schedules_broken(*state.schedules);
    if (!arguments.good() || broken) [[unlikely]] {
      (void)finish_all(buffers...);  // staged data come back unchanged
      return arguments.refused ? refuse(arguments) : fail(broken, arguments);
    }
    const engine::Outcome outcome = engine::run_prepared(
        schedules_scheduler(*state.schedules), [&](engine::Prepared& prepared) { return run(prepared, true); });
    if (outcome.path == Path::host || outcome.path == Path::cico) {
      (void)finish_all(buffers...);  // likewise
      return leave(outcome.path);
    }
    if (outcome.status != Status::ok) [[unlikely]]
      schedules_failed(*state.schedules, outcome.status);
    return end(state, outcome, buffers...);
  }

 private:
  // Ends a call that cannot go on on this rank. Peers wait for messages of this call that never
  // come. They must not take messages of a later call for them. So this rank makes no more calls by
  // schedule on this communicator. `broken`: an earlier call has failed so.
  [[gnu::cold]] bool fail(bool broken, const Arguments& arguments) const;
  // Schedules leave the call to the host, or to shared memory, before any side effect.
  [[gnu::cold]] bool leave(Path to) const;
};

}  // namespace stretto::mpi
