// SPDX-License-Identifier: BSD-3-Clause
// Calls that end in another way than by what they were made for.
#include "mpi/calls/serve.hpp"

namespace stretto::mpi {

bool leave_to_host(Call& call) {
  if (call.snapshot != nullptr) check_cancel(call);
  call_left(call.note);
  return false;
}

bool leave_to_memory(Call& call) {
  if (call.snapshot != nullptr) check_cancel(call);
  call_ended(call.note);
  call.note = 0;
  call.to_memory = true;
  return false;
}

namespace {

Mistake mistake_of(int error_class) {
  switch (error_class) {
    case MPI_ERR_ROOT: return Mistake::root;
    case MPI_ERR_COUNT: return Mistake::count;
    case MPI_ERR_TYPE: return Mistake::type;
    case MPI_ERR_BUFFER: return Mistake::buffer;
    case MPI_ERR_ARG: return Mistake::array;
    case MPI_ERR_OP: return Mistake::op;
    default: return Mistake::other;
  }
}

// Ends the call with an error. Neither the host nor shared memory serves it.
bool end_with(Call& call, int code, const char* what) {
  if (call.snapshot != nullptr) check_cancel(call);
  call_ended(call.note);
  if (g_timed) profile_refused();
  (void)raise(call, code, what);
  return true;
}

}  // namespace

bool refuse(Call& call, const Arguments& arguments) {
  engine::Comm* const comm = call.state->engine;
  if (comm != nullptr) engine::comm_refuse_call(*comm, call.collective(), mistake_of(arguments.code));
  // If the peers make this call and this rank never does, their messages to it stay unread.
  if (call.state->schedules != nullptr) schedules_left_behind(*call.state->schedules);
  return end_with(call, arguments.code, arguments.what);
}

bool fail_schedule(Call& call, int code, const char* what) {
  schedules_failed(*call.state->schedules, Status::invalid);
  return end_with(call, code, what);
}

bool fail_after_schedule(Call& call) {
  return end_with(call, MPI_ERR_OTHER,
                  "an earlier call on this communicator failed here in its midst: peers still wait in it");
}

bool without_communicator(Call& call) {
  if (call.snapshot != nullptr) check_cancel(call);
  return true;
}

}  // namespace stretto::mpi
