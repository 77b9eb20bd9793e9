// SPDX-License-Identifier: BSD-3-Clause
// The route of a blocking call over shared memory.
#pragma once
#include "mpi/calls/route.hpp"

namespace stretto::mpi {

class RouteEngine : public BlockingRoute {
 public:
  using BlockingRoute::BlockingRoute;

  [[gnu::always_inline]] static constexpr Overlap* overlap(std::uint64_t) { return nullptr; }
  [[gnu::always_inline]] static constexpr void leaves_overlap(const char*) {}

  // Raises what is wrong on this rank, runs the engine's part `run(comm, good)`, finishes the
  // buffers, and raises what failed. Returns false if the host must make the call, too, for
  // STRETTO_CHECK=3.
  template <class Run, class... Buffers>
  [[gnu::always_inline]] bool run(const Arguments& arguments, Run run, Buffers&... buffers) const {
    const State& state = *call().state;
    if (arguments.refused) [[unlikely]] {
      (void)finish_all(buffers...);  // staged data come back unchanged
      return refuse(arguments);
    }
    // Raised before this rank waits for peers: a fatal handler ends the job at once, and says why.
    if (!arguments.good()) [[unlikely]] {
      if (!raise(call(), arguments.code, arguments.what)) {
        (void)finish_all(buffers...);
        return without_communicator(call());
      }
    }
    return end(state, run(*state.engine, arguments.good()), buffers...);
  }
};

}  // namespace stretto::mpi
