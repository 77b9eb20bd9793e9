// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/posted.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "mpi/data/held_handles.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/state/late_errors.hpp"

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

void Posted::hold(Handle op, Handle type) {
  held[0] = op;
  held[1] = type;
  for (const Handle handle : held) held_add(handle);
}

void Posted::let_go() {
  for (Handle& handle : held) held_release(std::exchange(handle, 0));
  for (Data& each : data) each.let_go();
  for (TypedData& each : typed) each.let_go();
}

Posted::~Posted() {
  let_go();
  for (std::int64_t* array : arrays) std::free(array);
}

Posted* posted_create(Nonblocking& on) {
  void* const memory = std::malloc(sizeof(Posted));
  if (memory == nullptr) std::abort();  // a kilobyte, and peers have decided alike
  return new (memory) Posted(on);
}

void posted_free(Posted* posted) {
  if (posted != nullptr) release(posted);
}

int Posted::finish_data() { return finish_all(data[0], data[1], typed[0], typed[1]); }

Extents Posted::copy(Arguments& arguments, const Extents& extents) {
  if (extents.counts == nullptr) return extents;
  const auto ranks = static_cast<std::size_t>(extents.ranks);
  std::int64_t*& place = arrays[arrays[0] != nullptr ? 1 : 0];
  place = static_cast<std::int64_t*>(std::malloc(2 * ranks * sizeof(std::int64_t)));
  if (place == nullptr) {
    arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return {0, nullptr, nullptr, false, extents.ranks};
  }
  const auto number = [&](const void* array, std::size_t r) {
    return extents.wide ? static_cast<const std::int64_t*>(array)[r] : static_cast<const int*>(array)[r];
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    place[r] = number(extents.counts, r);
    place[ranks + r] = number(extents.displs, r);
  }
  return {0, place, place + ranks, true, extents.ranks};
}

int Posted::request_for(const Call& made_by) {
  {
    const Inside inside;
    const int result = host().Grequest_start(query, release, cancel, this, &request);
    if (result != MPI_SUCCESS) return result;
  }
  given = true;
  counted = made_by.requested->own != nullptr;
  entry = made_by.entry;
  comm = made_by.state->handle;
  serial = made_by.state->serial;
  *static_cast<MPI_Request*>(made_by.requested->request) = request;
  return MPI_SUCCESS;
}

void Posted::post() { requests_post(on, *this, complete); }

}  // namespace stretto::mpi
