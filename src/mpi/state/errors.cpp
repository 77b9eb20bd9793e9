// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/state/errors.hpp"

#include <pthread.h>

#include <cstdlib>

#include "base/log.hpp"

namespace stretto::mpi {
namespace {

// Stretto's own codes, for failures for which MPI has no class. They are in the class
// MPI_ERR_OTHER and have a text.
struct OwnCode {
  const char* text;
  int code;
};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit OwnCode g_peer_failed = {"another rank's arguments to this collective are wrong", MPI_SUCCESS};
constinit OwnCode g_peer_gone = {"another rank has ended, finalized or freed the communicator", MPI_SUCCESS};
constinit OwnCode g_peer_lost = {"another rank has died, or the connection to it is gone", MPI_SUCCESS};
constinit OwnCode g_not_moved = {
    "the MPI has failed to move a message of this collective: another rank has died, or its arguments are wrong",
    MPI_SUCCESS};
constinit OwnCode g_mismatch = {"another rank is in another collective", MPI_SUCCESS};

int own_code(OwnCode& own) {
  pthread_mutex_lock(&g_lock);
  if (own.code == MPI_SUCCESS) {
    const Inside inside;
    if (host().Add_error_code(MPI_ERR_OTHER, &own.code) == MPI_SUCCESS) {
      host().Add_error_string(own.code, own.text);
    } else {
      own.code = MPI_ERR_OTHER;
    }
  }
  pthread_mutex_unlock(&g_lock);
  return own.code;
}

// The communicator whose error handler hears of an error in a call on this one. The call may be the
// start of a persistent request, and the communicator may have been freed. Null: there is none.
MPI_Comm heard_by(const State& state) { return communicator_or_self(state.handle, state.serial); }

// Writes a line if the error handler ends the job, because the host's own message cannot name our
// function. Returns whether it is such a handler.
bool say_if_fatal(const Call& call, const State& state, const char* what) {
  const Inside inside;
  const MPI_Comm comm = heard_by(state);
  MPI_Errhandler handler;
  if (comm == host().constants.comm_null || host().Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) return false;
  const bool fatal = handler == host().constants.errors_are_fatal;
  host().Errhandler_free(&handler);
  if (!fatal) return false;
  log_line(LogLevel::error, "%s, rank %d of a communicator of %d: %s", kEntryFacts[static_cast<int>(call.entry)].name,
           state.rank, state.size, what);
  log_drain();
  return true;
}

// May call the program's function, so it is not marked as inside. Returns whether the communicator
// still lives.
bool call_handler(const Call& call) {
  const MPI_Comm its = call.state->handle, comm = heard_by(*call.state);
  const std::uint64_t serial = call.state->serial;
  if (comm != host().constants.comm_null) host().Comm_call_errhandler(comm, call.code);
  return communicator_lives(its, serial);
}

// MPICH's fatal handler takes an added code for one of MPICH's own and reports some network error.
// So Stretto itself ends the job where the handler is fatal.
bool raise_own(Call& call, OwnCode& own) {
  call.code = own_code(own);
  if (say_if_fatal(call, *call.state, own.text)) {
    host().Abort(heard_by(*call.state), MPI_ERR_OTHER);
    std::_Exit(MPI_ERR_OTHER);  // under Slurm, MPICH's MPI_Abort returns
  }
  return call_handler(call);
}

}  // namespace

void errors_stop() {
  pthread_mutex_lock(&g_lock);
  for (OwnCode* own : {&g_peer_failed, &g_peer_gone, &g_peer_lost, &g_not_moved, &g_mismatch}) own->code = MPI_SUCCESS;
  pthread_mutex_unlock(&g_lock);
}

bool raise(Call& call, int code, const char* what) {
  call.code = code;
  (void)say_if_fatal(call, *call.state, what);
  return call_handler(call);
}

int code_of(Status status) {
  switch (status) {
    case Status::ok: return MPI_SUCCESS;
    case Status::truncated:
    case Status::other_length: return MPI_ERR_TRUNCATE;
    case Status::peer_failed: return own_code(g_peer_failed);
    case Status::peer_gone: return own_code(g_peer_gone);
    case Status::peer_lost: return own_code(g_peer_lost);
    case Status::not_moved: return own_code(g_not_moved);
    case Status::other_root: return MPI_ERR_ROOT;
    case Status::other_op: return MPI_ERR_OP;
    case Status::other_type: return MPI_ERR_TYPE;
    case Status::mismatch: return own_code(g_mismatch);
    case Status::no_memory: return MPI_ERR_NO_MEM;
    case Status::unavailable:
    case Status::invalid: break;
  }
  return MPI_ERR_OTHER;
}

bool raise(Call& call, Status status) {
  switch (status) {
    case Status::ok: return true;
    case Status::truncated: return raise(call, MPI_ERR_TRUNCATE, "the message is longer than the receive buffer");
    case Status::peer_failed: return raise_own(call, g_peer_failed);
    case Status::peer_gone: return raise_own(call, g_peer_gone);
    case Status::peer_lost: return raise_own(call, g_peer_lost);
    case Status::not_moved: return raise_own(call, g_not_moved);
    case Status::other_root: return raise(call, MPI_ERR_ROOT, "another rank names another root");
    case Status::other_op: return raise(call, MPI_ERR_OP, "another rank names another operation");
    case Status::other_type: return raise(call, MPI_ERR_TYPE, "another rank gives another datatype");
    case Status::other_length: return raise(call, MPI_ERR_TRUNCATE, "another rank gives another count");
    case Status::mismatch: return raise_own(call, g_mismatch);
    case Status::no_memory: return raise(call, MPI_ERR_NO_MEM, "no memory");
    case Status::unavailable:
    case Status::invalid: break;
  }
  return raise(call, MPI_ERR_OTHER, "the shared-memory engine failed");
}

}  // namespace stretto::mpi
