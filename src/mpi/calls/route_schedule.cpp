// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/route_schedule.hpp"

namespace stretto::mpi {

bool RouteSchedule::fail(bool broken, const Arguments& arguments) const {
  if (broken)
    return end_with(call(), MPI_ERR_OTHER,
                    "an earlier call on this communicator failed here in its midst: peers still wait in it");
  schedules_failed(*call().state->schedules, Status::invalid);
  return end_with(call(), arguments.code, arguments.what);
}

bool RouteSchedule::leave(Path to) const {
  if (call().snapshot != nullptr) check_cancel(call());
  if (to == Path::host) {
    call_left(call().note);
  } else {
    call_ended(call().note);
    call().note = 0;
    call().to_memory = true;
  }
  return false;
}

}  // namespace stretto::mpi
