// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/route.hpp"

#include "mpi/comm/schedules.hpp"

namespace stretto::mpi {
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

}  // namespace

bool end_with(Call& call, int code, const char* what) {
  if (call.snapshot != nullptr) check_cancel(call);
  call_ended(call.note);
  if (g_timed) profile_refused();
  (void)raise(call, code, what);
  return true;
}

bool refuse(Call& call, const Arguments& arguments) {
  engine::Comm* const comm = call.state->engine;
  if (comm != nullptr) engine::comm_refuse_call(*comm, call.collective(), mistake_of(arguments.code));
  // If the peers make this call and this rank never does, their messages to it stay unread.
  if (call.state->schedules != nullptr) schedules_left_behind(*call.state->schedules);
  return end_with(call, arguments.code, arguments.what);
}

bool without_communicator(Call& call) {
  if (call.snapshot != nullptr) check_cancel(call);
  return true;
}

}  // namespace stretto::mpi
