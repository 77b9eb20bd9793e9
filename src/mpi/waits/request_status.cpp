// SPDX-License-Identifier: BSD-3-Clause
// MPI_Request_get_status_all, _any and _some, and MPICH's MPIX_Request_is_complete. They look at
// requests and end none. MPI 4.1 brought the first three, so a host may lack them.
#include "mpi/requests/own_requests.hpp"
#include "mpi/requests/persistent.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/waits/host_requests.hpp"
#include "mpi/waits/program_waits.hpp"

namespace stretto::mpi {
namespace {

enum class Standing : std::uint8_t { inactive, pending, complete };

// An MPI gives the empty status for a request that is null or inactive. No message has it.
Standing look(MPI_Request request, MPI_Status* status, int* code) {
  if (request == host().constants.request_null) return Standing::inactive;
  MPI_Status found;
  int flag = 0;
  *code = host().Request_get_status(request, &flag, &found);
  if (*code != MPI_SUCCESS || flag == 0) return Standing::pending;
  if (status != MPI_STATUS_IGNORE) *status = found;
  const bool empty = found.MPI_SOURCE == MPI_ANY_SOURCE && found.MPI_TAG == MPI_ANY_TAG;
  return empty ? Standing::inactive : Standing::complete;
}

// What MPI says of a request that is null.
void set_empty(MPI_Status* status) {
  int flag = 0;
  if (status != MPI_STATUS_IGNORE) host().Request_get_status(host().constants.request_null, &flag, status);
}

MPI_Status* nth(void* statuses, int i) {
  auto* const array = static_cast<MPI_Status*>(statuses);
  return array == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &array[i];
}

// Our own functions know the host's handles only if the host has our ABI.
void need_own_abi(Entry entry) {
  if (host().Request_get_status == nullptr) entry_missing(entry);
}
const MPI_Request* known(Entry entry, const void* requests) {
  need_own_abi(entry);
  return static_cast<const MPI_Request*>(requests);
}

// The program's call with the requests that the host knows. False: it is the host's turn.
template <Entry entry, class... Arguments>
bool test(int (*stand_in)(int, const void*, Arguments...), int* code, int count, const void* array,
          Arguments... arguments) {
  drive_own_requests();
  if (!own_requests_outstanding() || count <= 0 || array == nullptr) return false;
  HostRequests requests(count, const_cast<void*>(array));
  if (!requests.has_memory()) {
    *code = MPI_ERR_NO_MEM;
    return true;
  }
  void* const function = host_entry_if_any(entry);
  *code = (function != nullptr ? reinterpret_cast<decltype(stand_in)>(function) : stand_in)(count, requests.get(),
                                                                                            arguments...);
  return true;
}

}  // namespace

int request_get_status_all_stand_in(int count, const void* array, int* flag, void* statuses) {
  const auto* const requests = known(Entry::request_get_status_all, array);
  int code = MPI_SUCCESS;
  *flag = 1;
  for (int i = 0; i < count && *flag != 0 && code == MPI_SUCCESS; ++i) {
    MPI_Status* const status = nth(statuses, i);
    if (requests[i] == host().constants.request_null) set_empty(status);
    *flag = look(requests[i], status, &code) != Standing::pending;
  }
  return code;
}

int request_get_status_any_stand_in(int count, const void* array, int* index, int* flag, void* status) {
  const auto* const requests = known(Entry::request_get_status_any, array);
  int code = MPI_SUCCESS;
  *flag = 1;
  *index = MPI_UNDEFINED;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) {
    switch (look(requests[i], static_cast<MPI_Status*>(status), &code)) {
      case Standing::inactive: break;
      case Standing::pending: *flag = 0; break;
      case Standing::complete:
        *index = i;
        *flag = 1;
        return MPI_SUCCESS;
    }
  }
  if (*flag != 0) set_empty(static_cast<MPI_Status*>(status));
  return code;
}

int request_get_status_some_stand_in(int count, const void* array, int* done, int* indices, void* statuses) {
  const auto* const requests = known(Entry::request_get_status_some, array);
  int code = MPI_SUCCESS, found = 0;
  bool active = false;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) {
    const Standing standing = look(requests[i], nth(statuses, found), &code);
    active = active || standing != Standing::inactive;
    if (standing == Standing::complete) indices[found++] = i;
  }
  *done = active ? found : MPI_UNDEFINED;
  return code;
}

int request_is_complete_stand_in(Handle request) {
  need_own_abi(Entry::request_is_complete);
  int flag = 0;
  return host().Request_get_status((MPI_Request)request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag != 0;
}

int stream_progress_stand_in(Handle) {
  need_own_abi(Entry::stream_progress);
  progress_poke(nullptr);
  return MPI_SUCCESS;
}

bool test_in_request_get_status_all(int* code, int count, const void* requests, int* flag, void* statuses) {
  return test<Entry::request_get_status_all>(request_get_status_all_stand_in, code, count, requests, flag, statuses);
}

bool test_in_request_get_status_any(int* code, int count, const void* requests, int* index, int* flag, void* status) {
  return test<Entry::request_get_status_any>(request_get_status_any_stand_in, code, count, requests, index, flag,
                                             status);
}

bool test_in_request_get_status_some(int* code, int count, const void* requests, int* done, int* indices,
                                     void* statuses) {
  return test<Entry::request_get_status_some>(request_get_status_some_stand_in, code, count, requests, done, indices,
                                              statuses);
}

bool test_in_request_is_complete(int* complete, Handle handle) {
  drive_own_requests();
  if (!own_requests_outstanding()) return false;
  const auto request = (Handle)persistent_current((MPI_Request)handle);  // NOLINT: an int or a pointer
  void* const function = host_entry_if_any(Entry::request_is_complete);
  *complete = function != nullptr ? reinterpret_cast<int (*)(Handle)>(function)(request)
                                  : request_is_complete_stand_in(request);
  return true;
}

}  // namespace stretto::mpi
