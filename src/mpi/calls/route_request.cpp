// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/route_request.hpp"

#include "mpi/state/errors.hpp"
#include "mpi/stats/count.hpp"

namespace stretto::mpi {

Posted* RouteRequest::begin(Call& call, Handle comm) {
  const Requested& requested = *call.requested;
  call.state = requested.own != nullptr ? requested.state : state_if_any(as<MPI_Comm>(comm));
  if (call.state == nullptr) return nullptr;
  Nonblocking* const on = requested.own != nullptr ? requested.own : call.state->nonblocking;
  if (nonblocking_may_ask(*call.state)) t_thread.asks = call.state;
  const bool served = on != nullptr && (on->served >> static_cast<int>(call.collective()) & 1) != 0;
  return served ? posted_create(*on) : nullptr;
}

void RouteRequest::end(Call& call, Posted* posted) {
  if (call.requested->tries && call.code == MPI_SUCCESS)
    call.requested->tried = posted;
  else if (!posted->given)
    posted_free(posted);
}

Data& RouteRequest::data(int which) const {
  posted_.data[which].keep();
  return posted_.data[which];
}

TypedData& RouteRequest::typed(int which) const {
  posted_.typed[which].keep();
  return posted_.typed[which];
}

bool RouteRequest::refuse(const Arguments& arguments) const {
  (void)raise(call_, arguments.code, arguments.what);
  return true;
}

bool RouteRequest::go(const engine::Outcome& prepared) const {
  if (prepared.status != Status::ok) {
    (void)posted_.finish_data();
    (void)raise(call_, prepared.status);
    return true;
  }
  const int code = posted_.request_for(call_);
  if (code != MPI_SUCCESS) {
    (void)raise(call_, code, "the MPI makes no request");
    return true;
  }
  count_call(call_, Path::schedule, 0);
  posted_.post();
  return true;
}

}  // namespace stretto::mpi
