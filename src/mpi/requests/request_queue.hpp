// SPDX-License-Identifier: BSD-3-Clause
// All calls with requests of this process, who drives them, and who ends them.
//
// MPI promises that a call goes on while the program is in any other call of MPI, and many of these
// wait inside the host. A thread drives the calls while nobody else does. It calls no MPI, so it
// needs no thread level. It sleeps while there are no calls.
#pragma once
#include <cstdint>

#include "engine/call_queue.hpp"
#include "mpi/requests/own_requests.hpp"

namespace stretto::mpi {

// The calls with requests of one communicator.
struct RequestQueue {
  engine::CallQueue queue;
  // Guarded by the lock of request_queue.cpp.
  std::uint64_t users = 1;  // the communicator, and calls that have not been completed
  RequestQueue* next = nullptr;
};

void requests_add(RequestQueue& queue);
// True: the caller has been the last user.
bool requests_release(RequestQueue& queue);
// Completes a call that has ended, in a thread of the program. One for all calls.
using RequestCompletion = void (*)(engine::Prepared& call);
// The call takes its turn.
void requests_post(RequestQueue& queue, engine::Prepared& call, RequestCompletion complete);
// At MPI_Finalize: ends what can end, and the thread.
void requests_finish();

}  // namespace stretto::mpi
