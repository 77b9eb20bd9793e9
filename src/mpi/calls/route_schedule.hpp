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

  // As RouteEngine::run(). The part `run(prepared, good)` prepares the call. Returns false, too, if
  // schedules leave the call to the host, or to shared memory.
  template <class Finish, class Run>
  bool run(const Arguments& arguments, const Finish& finish, const Run& run) const {
    const bool broken = schedules_broken(*call().state->schedules);
    if (!arguments.good() || broken) [[unlikely]] {
      (void)finish();  // staged data come back unchanged
      return arguments.refused ? refuse(arguments) : fail(broken, arguments);
    }
    const engine::Outcome outcome = engine::run_prepared(
        schedules_scheduler(*call().state->schedules), [&](engine::Prepared& prepared) { return run(prepared, true); });
    if (outcome.path == Path::host || outcome.path == Path::cico) {
      (void)finish();  // likewise
      return leave(outcome.path);
    }
    if (outcome.status != Status::ok) [[unlikely]]
      schedules_failed(*call().state->schedules, outcome.status);
    return end(outcome, finish);
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
