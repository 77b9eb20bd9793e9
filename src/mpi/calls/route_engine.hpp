// SPDX-License-Identifier: BSD-3-Clause
// The route of a blocking call over shared memory.
#pragma once
#include "mpi/calls/route.hpp"

namespace stretto::mpi {

class RouteEngine : public BlockingRoute {
 public:
  using BlockingRoute::BlockingRoute;

  [[gnu::always_inline]] static constexpr Overlap* overlap(std::uint64_t) { return nullptr; }

  // Raises what is wrong on this rank, runs the engine's part `run(comm, good)`, and raises what
  // failed in it. `finish` copies staged results to the program's buffers and returns the first
  // error code. Returns false if the host must make the call, too, for STRETTO_CHECK=3.
  template <class Finish, class Run>
  [[gnu::always_inline]] bool run(const Arguments& arguments, const Finish& finish, const Run& run) const {
    if (arguments.refused) [[unlikely]] {
      (void)finish();  // staged data come back unchanged
      return refuse(arguments);
    }
    // Raised before this rank waits for peers: a fatal handler ends the job at once, and says why.
    if (!arguments.good()) [[unlikely]] {
      if (!raise(call(), arguments.code, arguments.what)) {
        (void)finish();
        return without_communicator();
      }
    }
    return end(run(*call().state->engine, arguments.good()), finish);
  }
};

}  // namespace stretto::mpi
