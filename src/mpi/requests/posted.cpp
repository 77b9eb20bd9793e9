// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/posted.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "mpi/data/held_handles.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/state/late_errors.hpp"
#include "mpi/stats/count.hpp"

namespace stretto::mpi {
namespace {

// Of a generalized request.
int query(void* context, MPI_Status* status) {
  const Inside inside;
  host().Status_set_elements(status, host().constants.byte, 0);
  host().Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  const auto& posted = *static_cast<const Posted*>(context);
  if (posted.code != MPI_SUCCESS)
    late_errors_note({posted.request, posted.entry, posted.comm, posted.serial, posted.outcome.status, posted.code});
  return MPI_SUCCESS;
}
int release(void* context) {
  auto* const posted = static_cast<Posted*>(context);
  if (posted->counted) g_own_requests.fetch_sub(1, std::memory_order_relaxed);
  posted->~Posted();
  std::free(posted);
  return MPI_SUCCESS;
}
// MPI forbids it for collectives.
int cancel(void*, int) { return MPI_ERR_REQUEST; }

// Calls the program's function, and unpacks what the host must unpack. Then it completes the
// request, and the program, or the host, may free the call.
void complete(engine::Prepared& call) {
  auto& posted = static_cast<Posted&>(call);
  if (posted.outcome.status == Status::ok) posted.contributed.fold();
  const int code = posted.finish_data();
  const int of_function = posted.work.function.code;
  posted.code = posted.outcome.status != Status::ok ? code_of(posted.outcome.status)
                : of_function != MPI_SUCCESS        ? of_function
                                                    : code;
  posted.let_go();
  nonblocking_free(&posted.on);
  posted.counted = posted.counted || posted.code != MPI_SUCCESS;
  if (!posted.counted) g_own_requests.fetch_sub(1, std::memory_order_relaxed);
  host().Grequest_complete(posted.request);
}

}  // namespace

void Posted::let_go() {
  for (Handle& handle : held) held_release(std::exchange(handle, 0));
  for (Data& each : data) each.let_go();
  for (TypedData& each : typed) each.let_go();
}

Posted::~Posted() {
  let_go();
  for (std::int64_t* array : arrays) std::free(array);
}

Posted* posted_begin(Call& call, Handle comm) {
  const Requested& requested = *call.requested;
  call.state = requested.own != nullptr ? requested.state : state_if_any(as<MPI_Comm>(comm));
  if (call.state == nullptr) return nullptr;
  Nonblocking* const on = requested.own != nullptr ? requested.own : call.state->nonblocking;
  if (nonblocking_may_ask(*call.state)) t_thread.asks = call.state;
  if (on == nullptr || (on->served >> static_cast<int>(call.collective()) & 1) == 0) return nullptr;
  void* const memory = std::malloc(sizeof(Posted));
  if (memory == nullptr) std::abort();  // a kilobyte, and peers have decided alike
  return new (memory) Posted(*on);
}

void posted_end(Call& call, Posted* posted) {
  if (call.requested->tries && call.code == MPI_SUCCESS)
    call.requested->tried = posted;
  else if (!posted->given)
    release(posted);
}
void posted_free(Posted* posted) {
  if (posted != nullptr) release(posted);
}

int Posted::finish_data() {
  const int of_data = finish_all(&data[0], &data[1]);
  const int of_typed = finish_both(typed[0], typed[1]);
  return of_data != MPI_SUCCESS ? of_data : of_typed;
}

TypedData& posted_typed(Posted& posted, int which) {
  posted.typed[which].keep();
  return posted.typed[which];
}

Data& posted_data(Posted& posted, int which) {
  posted.data[which].keep();
  return posted.data[which];
}
engine::Prepared& posted_prepared(Posted& posted) { return posted; }
FunctionWork& posted_work(Posted& posted) { return posted.work; }
engine::Contributed& posted_contributed(Posted& posted) { return posted.contributed; }

void posted_hold(Posted& posted, Handle op, Handle type) {
  posted.held[0] = op;
  posted.held[1] = type;
  for (const Handle handle : posted.held) held_add(handle);
}

// The refused call has no number in the order of blocking calls, so no peer hears of it.
bool posted_refuse(Call& call, const Arguments& arguments) {
  (void)raise(call, arguments.code, arguments.what);
  return true;
}

Extents posted_extents(Posted& posted, Arguments& arguments, const Extents& given) {
  if (given.counts == nullptr) return given;
  const auto ranks = static_cast<std::size_t>(given.ranks);
  std::int64_t*& place = posted.arrays[posted.arrays[0] != nullptr ? 1 : 0];
  place = static_cast<std::int64_t*>(std::malloc(2 * ranks * sizeof(std::int64_t)));
  if (place == nullptr) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return {0, nullptr, nullptr, false, given.ranks};
  }
  const auto entry = [&](const void* array, std::size_t r) {
    return given.wide ? static_cast<const std::int64_t*>(array)[r] : static_cast<const int*>(array)[r];
  };
  for (std::size_t r = 0; r < ranks; r++) {
    place[r] = entry(given.counts, r);
    place[ranks + r] = entry(given.displs, r);
  }
  return {0, place, place + ranks, true, given.ranks};
}

bool posted_go(Call& call, Posted& posted, const engine::Outcome& prepared) {
  if (prepared.status != Status::ok) {
    (void)posted.finish_data();
    (void)raise(call, prepared.status);
    return true;
  }
  auto* const request = static_cast<MPI_Request*>(call.requested->request);
  int code = MPI_SUCCESS;
  {
    const Inside inside;
    code = host().Grequest_start(query, release, cancel, &posted, &posted.request);
  }
  if (code != MPI_SUCCESS) {
    (void)raise(call, code, "the MPI makes no request");
    return true;
  }
  posted.given = true;
  posted.counted = call.requested->own != nullptr;
  posted.entry = call.entry;
  posted.comm = call.state->handle;
  posted.serial = call.state->serial;
  *request = posted.request;
  count_call(call, Path::schedule, 0);
  requests_post(posted.on, posted, complete);
  return true;
}

}  // namespace stretto::mpi
