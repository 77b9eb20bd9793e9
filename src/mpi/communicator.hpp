// SPDX-License-Identifier: BSD-3-Clause
// What a communicator costs us, from its first native collective until its attribute's delete callback.
//
//   first use    the host serves it. Each rank counts the calls that have ended: all ranks make the same calls in the
//   same order n-th use     after a call in which every rank waits for all others anyway, all members agree by
//   PMPI_Allgather on the
//                communicator itself: served, or left to the host for good. A communicator that is used less costs no
//                agreement, and no rank waits in a collective that would not make it wait (STRETTO_AGREE)
//   later        a few compares: each thread remembers the communicators it used last; a global epoch, which every
//                deletion advances, tells it when to forget (handle values are reused)
//   freed        MPI deletes our attribute; nothing synchronises
//
// No communicator is duplicated and MPI's functions for making communicators are not wrapped. MPI_Comm_dup does not
// copy the attribute: a duplicate comes to its own state. MPI_Comm_free and MPI_Comm_disconnect are, for one reason:
// callbacks that delete the user's attributes may still call collectives, and would make a state of whose end nobody
// tells us.
#pragma once
#include <atomic>

#include "engine/engine.hpp"
#include "mpi/entry.hpp"
#include "mpi/host.hpp"
#include "mpi/stats.hpp"

namespace stretto::mpi {

struct Schedules;  // schedules.hpp

struct State {
  engine::Comm* engine = nullptr;  // null: members share no memory, for `reason`
  std::uint32_t served = 0;        // by the engine; bit set by Collective
  std::uint32_t scheduled = 0;     // by schedules; likewise. What is in neither goes to the host
  Schedules* schedules = nullptr;
  int check = 0;                   // STRETTO_CHECK as agreed
  bool leaves_rounding = false;    // to the host: STRETTO_REPRODUCIBLE=mpi
  bool agreed = false;             // who serves it; until then the host does, and these collectives have ended:
  std::uint32_t calls = 0;         // of any kind
  std::uint32_t calls_of_all = 0;  // in which every rank waits for all others
  MPI_Comm handle{};
  int rank = 0;
  int size = 0;
  std::uint64_t serial = 0;  // n-th communicator of this process, for messages
  const char* reason = nullptr;
  int reason_rank = -1;  // who declined, -1: a fact all see
  Counters counters{};
  State* next = nullptr;  // in the bucket
};

extern constinit std::atomic<std::uint64_t> g_epoch;
// What observers see of this process' calls, by collective. Set while the first communicators are made.
extern constinit std::atomic<shm::Tally*> g_tally;
extern constinit std::atomic<bool> g_concurrent;  // threads may be in collectives at the same time
// The host's own, of bytes, over the communicator whose handle this points to (engine::Bootstrap).
bool allgather_bytes(void* communicator, const void* mine, void* all, std::size_t bytes);

// Tells observers of a call on a communicator that shared memory does not serve. Returns what call_ended wants; 0:
// nothing.
std::uint64_t call_noted(Collective collective, bool by_schedule);
void call_left(std::uint64_t note);  // to the host
void call_ended(std::uint64_t note);

struct Recent {
  MPI_Comm handle;
  State* state;
  std::uint64_t epoch;
};
inline constexpr unsigned kRecent = 8;
extern thread_local constinit Recent t_recent[kRecent] STRETTO_TLS;

inline unsigned recent_slot(MPI_Comm comm) {
  const auto bits = (std::uintptr_t)comm;  // NOLINT: an int or a pointer
  return static_cast<unsigned>((bits ^ bits >> 4 ^ bits >> 9) % kRecent);
}

[[gnu::cold]] State* state_find_or_create(MPI_Comm comm, Collective collective);

// The state of a communicator, made at first use; null for what is no communicator. `collective` is
// what is called there.
inline State* state_of(MPI_Comm comm, Collective collective) {
  const Recent& recent = t_recent[recent_slot(comm)];
  if (recent.handle == comm && recent.epoch == g_epoch.load(std::memory_order_relaxed)) [[likely]]
    return recent.state;
  return state_find_or_create(comm, collective);
}

// After a call on a communicator whose members have not agreed yet, which came to `code`:
// collective over it, if now they do.
[[gnu::cold]] void call_before_agreement(State& state, Collective collective, int code);

// Before the host goes: gives the engine's part of every communicator back, and the process' segment.
void communicators_stop();
bool communicators_alive();
// Whether the communicator with this handle is still the one that was the n-th.
[[gnu::cold]] bool communicator_lives(MPI_Comm comm, std::uint64_t serial);
// Threads look for this communicator's state again, and do not find it without asking whether it is
// being freed (freeing.hpp).
void communicator_forget(MPI_Comm comm);
// Calls `each` for every living state, under the lock.
void communicators_each(void (*each)(void* context, const State& state), void* context);

}  // namespace stretto::mpi
