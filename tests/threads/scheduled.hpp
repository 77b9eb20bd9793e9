// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls by schedule, by the names of the engine's own.
#pragma once
#include "engine/prepared.hpp"

namespace stretto::engine {

#define STRETTO_SCHEDULED(name)                                                                \
  template <class... Arguments>                                                                \
  Outcome name(Scheduler& by, const Arguments&... arguments) {                                 \
    return run_prepared(by, [&](Prepared& prepared) { return name(prepared, arguments...); }); \
  }
STRETTO_SCHEDULED(barrier)
STRETTO_SCHEDULED(bcast)
STRETTO_SCHEDULED(gather)
STRETTO_SCHEDULED(scatter)
STRETTO_SCHEDULED(allgather)
STRETTO_SCHEDULED(alltoall)
STRETTO_SCHEDULED(reduce)
STRETTO_SCHEDULED(allreduce)
STRETTO_SCHEDULED(reduce_scatter)
STRETTO_SCHEDULED(scan)
#undef STRETTO_SCHEDULED

}  // namespace stretto::engine
