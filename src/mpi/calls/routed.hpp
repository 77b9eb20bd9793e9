// SPDX-License-Identifier: BSD-3-Clause
// Who serves a call. Facts that all ranks share decide, so all members decide alike. It is in a
// header, because all of it is inlined into short calls.
#pragma once
#include "mpi/calls/route_engine.hpp"
#include "mpi/calls/route_request.hpp"
#include "mpi/calls/route_schedule.hpp"
#include "mpi/comm/communicator.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

// The communicator's state, if shared memory serves this collective on it. Null otherwise.
[[gnu::always_inline]] inline State* serving_state(Call& call, Handle comm) {
  State* const state = state_of(as<MPI_Comm>(comm), call.collective());
  call.state = state;
  if (state == nullptr) return nullptr;
  if (g_timed) [[unlikely]] {
    if (call.began_ns == 0) call.began_ns = sys::now_ns();  // the first call's wrapper had not read the options yet
    profile_open(call);
  }
  return (state->served >> static_cast<int>(call.collective()) & 1) != 0 ? state : nullptr;
}

// Gives a call to a route, by `serve(route)`. Returns false if the host serves it.
template <class Serve>
[[gnu::always_inline]] inline bool routed(Call& call, Handle comm, Serve serve) {
  if (call.requested != nullptr) [[unlikely]] {
    Posted* const posted = RouteRequest::begin(call, comm);
    if (posted == nullptr) return false;
    const bool served = serve(RouteRequest(call, *posted));
    RouteRequest::end(call, posted);
    return served;
  }
  if (serving_state(call, comm) == nullptr) [[unlikely]] {
    const bool by_schedule = goes_by_schedule(call);
    if (call.state != nullptr) call.note = call_noted(call.collective(), by_schedule);
    if (by_schedule && serve(RouteSchedule(call))) return true;
    if (!call.to_memory) return false;
  }
  return serve(RouteEngine(call));
}

}  // namespace stretto::mpi
