// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/state/late_errors.hpp"

#include <cstdlib>
#include <new>
#include <utility>

#include "mpi/job/world.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {
namespace {

struct Note {
  LateError error;
  Note* next;
};
thread_local constinit Note* t_notes STRETTO_TLS = nullptr;

}  // namespace

void late_errors_note(const LateError& error) {
  if (late_error_of(error.request) != nullptr) return;
  void* const memory = std::malloc(sizeof(Note));
  if (memory == nullptr) std::abort();  // the program must not take wrong data for right
  t_notes = new (memory) Note{error, t_notes};
}

void late_errors_forget() {
  while (t_notes != nullptr) std::free(std::exchange(t_notes, t_notes->next));
}

const LateError* late_error_of(MPI_Request request) {
  const Note* note = t_notes;
  while (note != nullptr && note->error.request != request) note = note->next;
  return note != nullptr ? &note->error : nullptr;
}

// MPI gives errors that belong to no communicator to the handler of MPI_COMM_SELF.
int late_error_raise(const LateError& error) {
  Call call{error.entry};
  call.state = communicator_lives(error.comm, error.serial) ? state_if_any(error.comm) : nullptr;
  if (call.state == nullptr) {
    if (world().agreed) host().Comm_call_errhandler(host().constants.comm_self, error.code);
    return error.code;
  }
  if (error.status != Status::ok)
    (void)raise(call, error.status);
  else
    (void)raise(call, error.code, "the MPI failed to unpack, or to combine");
  return call.code;
}

}  // namespace stretto::mpi
