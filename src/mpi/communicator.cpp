// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/communicator.hpp"

#include <pthread.h>

#include <cstdlib>
#include <new>

#include "base/locked.hpp"
#include "mpi/comm_agreement.hpp"
#include "mpi/freeing.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/neighborhood.hpp"
#include "mpi/nonblocking.hpp"
#include "mpi/process.hpp"
#include "mpi/schedules.hpp"

namespace stretto::mpi {

constinit std::atomic<std::uint64_t> g_epoch{1};  // 0 is the epoch of the empty slots of t_recent
thread_local constinit Recent t_recent[kRecent] STRETTO_TLS = {};

namespace {

constexpr unsigned kBuckets = 256;

// Guards everything here. No thread holds it in a call that waits for other ranks.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit State* g_buckets[kBuckets] = {};
constinit std::uint64_t g_serial = 0;

unsigned bucket_of(MPI_Comm comm) {
  const auto bits = (std::uintptr_t)comm;
  return static_cast<unsigned>((bits ^ bits >> 5 ^ bits >> 13) % kBuckets);
}

State* find(MPI_Comm comm) {
  const Locked locked(g_lock);
  State* state = g_buckets[bucket_of(comm)];
  while (state != nullptr && state->handle != comm) state = state->next;
  return state;
}

// ---- The attribute ----

int never_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

void unlink(State* state) {
  State** link = &g_buckets[bucket_of(state->handle)];
  while (*link != nullptr && *link != state) link = &(*link)->next;
  if (*link == state) *link = state->next;
}

void end(State* state) {
  {
    const Locked locked(g_lock);
    unlink(state);
    stats_fold(*state);
    g_epoch.fetch_add(1, std::memory_order_relaxed);
  }
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
  {
    const Locked locked(g_lock);
    state->serial = g_serial++;
    state->next = g_buckets[bucket_of(comm)];
    g_buckets[bucket_of(comm)] = state;
  }
  if (state->agreed)
    report(*state);
  else if (calls_until_agreement(*state) == 0)
    agree(*state, collective);
  return state;
}

}  // namespace

State* state_if_any(MPI_Comm comm) {
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);  // as below
  Recent& recent = t_recent[recent_slot(comm)];
  if (recent.handle == comm && recent.epoch == epoch) return recent.state;
  if (is_being_freed(comm)) return nullptr;
  process_notice_thread();
  State* const state = find(comm);
  if (state != nullptr) recent = {comm, state, epoch};
  return state;
}

State* state_find_or_create(MPI_Comm comm, Collective collective) {
  if (comm == host().constants.comm_null) return nullptr;
  // Read before the look-up: after a deletion in between the entry is out of date
  // and does not seem valid.
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  if (is_being_freed(comm)) return nullptr;
  process_notice_thread();
  State* state = find(comm);
  if (state == nullptr) state = create(comm, collective);
  if (state == nullptr) return nullptr;
  t_recent[recent_slot(comm)] = {comm, state, epoch};
  return state;
}

void communicators_each(void (*each)(void* context, const State& state), void* context) {
  const Locked locked(g_lock);
  for (State* state : g_buckets) {
    for (; state != nullptr; state = state->next) each(context, *state);
  }
}

bool communicator_lives(MPI_Comm comm, std::uint64_t serial) {
  const State* const state = find(comm);
  return state != nullptr && state->serial == serial;
}

MPI_Comm communicator_or_self(MPI_Comm comm, std::uint64_t serial) {
  if (communicator_lives(comm, serial)) return comm;
  return world().agreed ? host().constants.comm_self : host().constants.comm_null;
}

MPI_Comm communicator_to_pack(MPI_Comm comm, std::uint64_t serial) {
  MPI_Comm found = communicator_or_self(comm, serial);
  if (found != host().constants.comm_null) return found;
  communicators_each([](void* place, const State& state) { *static_cast<MPI_Comm*>(place) = state.handle; }, &found);
  return found;
}

void communicator_being_freed(MPI_Comm comm) {
  State* const state = find(comm);
  if (state == nullptr) return;
  g_epoch.fetch_add(1, std::memory_order_relaxed);
  const Inside inside;
  if (!state->has_attribute) end(state);
}

std::uint64_t communicator_serial(MPI_Comm comm) {
  const State* const state = find(comm);
  return state != nullptr ? state->serial : 0;
}

std::uint64_t communicator_generation(MPI_Comm comm) {
  const State* const state = find(comm);
  return state != nullptr && state->engine != nullptr ? engine::comm_generation(*state->engine) : 0;
}

void communicators_stop() {
  const ProcessLock alive;
  {
    const Locked locked(g_lock);
    for (State* state : g_buckets) {
      for (; state != nullptr; state = state->next) {
        engine::comm_free(state->engine);
        schedules_free(state->schedules);
        nonblocking_free(state->nonblocking);
        state->engine = nullptr;
        state->schedules = nullptr;
        state->nonblocking = nullptr;
        state->served = state->scheduled = 0;
        state->agreed = true;
      }
    }
  }
  process_stop();
}

}  // namespace stretto::mpi
