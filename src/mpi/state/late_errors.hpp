// SPDX-License-Identifier: BSD-3-Clause
// Errors of requests of Stretto's own that are found after the call has returned.
//
// Of a generalized request that has failed, hosts call another communicator's error handler, and
// some drop the code. So the host is told of no error. It asks for a request's status in the wait
// or test that ends the request, in the thread that makes it. The answer notes the error for that
// thread. The wrapper of the wait or test finds the note, calls the error handler, and returns the
// code.
#pragma once
#include "base/status.hpp"
#include "mpi/host/entry.hpp"
#include "mpi/host/host.hpp"

namespace stretto::mpi {

struct LateError {
  MPI_Request request{};
  Entry entry{};  // that made the request
  MPI_Comm comm{};
  std::uint64_t serial = 0;  // of that communicator, which may be gone
  Status status = Status::ok;
  int code = MPI_SUCCESS;
};

void late_errors_note(const LateError& error);
// Forgets what earlier waits and tests of this thread left.
void late_errors_forget();
// The error of that request, if this thread's wait or test has found one. Null: none.
const LateError* late_error_of(MPI_Request request);
// Calls the error handler, once. Returns the code for the program.
int late_error_raise(const LateError& error);

}  // namespace stretto::mpi
