// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/state/state.hpp"

#include <pthread.h>

#include "base/locked.hpp"
#include "mpi/job/world.hpp"
#include "mpi/state/freeing.hpp"

namespace stretto::mpi {

constinit std::atomic<std::uint64_t> g_epoch{1};  // 0 is the epoch of the empty slots of t_recent
thread_local constinit Recent t_recent[kRecent] STRETTO_TLS = {};
constinit OnlyThread g_only_thread = {};

namespace {

constexpr unsigned kBuckets = 256;

// Guards everything here. No thread holds it in a call that waits for other ranks.
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit State* g_buckets[kBuckets] = {};
constinit std::uint64_t g_serial = 0;

State*& bucket_of(MPI_Comm comm) {
  const auto bits = (std::uintptr_t)comm;
  return g_buckets[(bits ^ bits >> 5 ^ bits >> 13) % kBuckets];
}

}  // namespace

void notice_thread() {
  const Recent* const only = g_only_thread.recent.load(std::memory_order_acquire);
  if (only != nullptr && only != t_recent) g_only_thread.another_calls();
}

State* state_find(MPI_Comm comm) {
  const Locked locked(g_lock);
  State* state = bucket_of(comm);
  while (state != nullptr && state->handle != comm) state = state->next;
  return state;
}

void state_add(State& state) {
  const Locked locked(g_lock);
  State*& bucket = bucket_of(state.handle);
  state.serial = g_serial++;
  state.next = bucket;
  bucket = &state;
}

void state_remove(State& state, void (*last)(const State& state)) {
  const Locked locked(g_lock);
  State** link = &bucket_of(state.handle);
  while (*link != nullptr && *link != &state) link = &(*link)->next;
  if (*link == &state) *link = state.next;
  last(state);
  g_epoch.fetch_add(1, std::memory_order_relaxed);
}

State* state_if_any(MPI_Comm comm) {
  // Read before the look-up: after a deletion in between the entry is out of date
  // and does not seem valid.
  const std::uint64_t epoch = g_epoch.load(std::memory_order_relaxed);
  Recent& recent = t_recent[recent_slot(comm)];
  if (recent.handle == comm && recent.epoch == epoch) return recent.state;
  if (is_being_freed(comm)) return nullptr;
  notice_thread();
  State* const state = state_find(comm);
  if (state != nullptr) recent = {comm, state, epoch};
  return state;
}

void communicators_each(void (*each)(void* context, const State& state), void* context) {
  const Locked locked(g_lock);
  for (const State* state : g_buckets) {
    for (; state != nullptr; state = state->next) each(context, *state);
  }
}

void communicators_change(void (*each)(State& state)) {
  const Locked locked(g_lock);
  for (State* state : g_buckets) {
    for (; state != nullptr; state = state->next) each(*state);
  }
}

bool communicator_lives(MPI_Comm comm, std::uint64_t serial) {
  const State* const state = state_find(comm);
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

std::uint64_t communicator_serial(MPI_Comm comm) {
  const State* const state = state_find(comm);
  return state != nullptr ? state->serial : 0;
}

std::uint64_t communicator_generation(MPI_Comm comm) {
  const State* const state = state_find(comm);
  return state != nullptr && state->engine != nullptr ? engine::comm_generation(*state->engine) : 0;
}

}  // namespace stretto::mpi
