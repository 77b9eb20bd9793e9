// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm/communicator.hpp"

#include <cstdlib>
#include <new>

#include "mpi/comm/comm_agreement.hpp"
#include "mpi/comm/process_life.hpp"
#include "mpi/comm/schedules.hpp"
#include "mpi/job/finalize.hpp"
#include "mpi/job/process.hpp"
#include "mpi/requests/nonblocking.hpp"
#include "mpi/state/freeing.hpp"
#include "mpi/state/neighborhood.hpp"
#include "mpi/stats/stats.hpp"

namespace stretto::mpi {

namespace {

// ---- The attribute ----

int never_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

void end(State* state) {
  state_remove(*state, stats_fold);
  if (state->engine != nullptr) engine::comm_free(state->engine);
  schedules_free(state->schedules);
  nonblocking_free(state->nonblocking);
  neighborhood_free(state->neighborhood);
  std::free(state);
  if (g_mode.load(std::memory_order_relaxed) == Mode::serving) process_leave();
}

int on_delete(MPI_Comm, int, void* value, void*) {
  end(static_cast<State*>(value));
  return MPI_SUCCESS;
}

// Each communicator has its own keyval, which is marked for deletion at once and lives as long
// as the attribute. So nothing must be kept over the end of a session, after which an old
// keyval would be an error.
//
// Without MPI_Init there is none, and the wrappers of MPI_Comm_free and MPI_Comm_disconnect end the
// state. MPICH keeps something for good for each first use of a kind of objects in an epoch of
// sessions, and fails after some 250 such uses. A program may have many epochs.
bool attach_attribute(MPI_Comm comm, State* state) {
  int keyval = MPI_KEYVAL_INVALID, initialized = 0;
  host().Initialized(&initialized);
  if (!initialized) return true;
  state->has_attribute = true;
  if (host().Comm_create_keyval(never_copy, on_delete, &keyval, nullptr) != MPI_SUCCESS) return false;
  const int code = host().Comm_set_attr(comm, keyval, state);
  host().Comm_free_keyval(&keyval);
  return code == MPI_SUCCESS;
}

// Returns null for a handle that names no communicator.
State* create(MPI_Comm comm, Collective collective) {
  if (!host_is_proven()) return nullptr;
  const Inside inside;
  int inter = 0;
  if (host().Comm_test_inter(comm, &inter) != MPI_SUCCESS) return nullptr;
  auto* const memory = std::malloc(sizeof(State));
  if (memory == nullptr || !process_enter()) std::abort();  // without this kilobyte nothing can be agreed
  auto* const state = new (memory) State;
  state->handle = comm;
  ensure_finalize_hook();
  // Without the attribute Stretto does not learn of the communicator's end, and it cannot
  // tell the other members so.
  if (!attach_attribute(comm, state)) std::abort();
  state->agreed = decide_alone(*state, inter != 0);
  if (!state->agreed) decline(*state, "left to the MPI until it is used more");
  state_add(*state);
  if (state->agreed)
    report(*state);
  else if (calls_until_agreement(*state) == 0)
    agree(*state, collective);
  return state;
}

}  // namespace

State* state_find_or_create(MPI_Comm comm, Collective collective) {
  if (comm == host().constants.comm_null) return nullptr;
  // Read before the look-up: after a deletion in between the entry is out of date
  // and does not seem valid.
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (is_being_freed(comm)) return nullptr;
  notice_thread();
  State* state = state_find(comm);
  if (state == nullptr) state = create(comm, collective);
  if (state == nullptr) return nullptr;
  t_recent[recent_slot(comm)] = {comm, state, epoch};
  return state;
}

void communicator_being_freed(MPI_Comm comm) {
  State* const state = state_find(comm);
  if (state == nullptr) return;
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  const Inside inside;
  if (!state->has_attribute) end(state);
}

void communicators_stop() {
  const ProcessLock alive;
  communicators_change([](State& state) {
    engine::comm_free(state.engine);
    schedules_free(state.schedules);
    nonblocking_free(state.nonblocking);
    state.engine = nullptr;
    state.schedules = nullptr;
    state.nonblocking = nullptr;
    state.served = state.scheduled = 0;
    state.agreed = true;
  });
  process_stop();
}

}  // namespace stretto::mpi
