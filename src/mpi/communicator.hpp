// SPDX-License-Identifier: BSD-3-Clause
// The life of a communicator, and what each part of it costs. STRETTO_AGREE says what n is.
//
//   first use   Stretto makes a State and attaches it to the communicator as an attribute. The host
//               serves the calls. Each rank counts the calls that have ended. All ranks count
//               alike, because they make the same calls in the same order.
//   n-th use    This call is one in which every rank waits for all others. After it, the members
//               agree by PMPI_Allgather on this communicator. From then on Stretto serves it, or
//               the host serves it for good. A communicator with few calls costs no agreement.
//               The agreement adds no wait to a collective in which ranks need not wait, such as a
//               Bcast. Only after many calls of any kind do the members agree in one of those, too
//               (Tuning::agree_calls_of_any_kind).
//   later use   Each thread remembers the communicators that it used last, so a call costs a few
//               compares. Handle values are reused. Every deletion advances a global epoch, and
//               a thread forgets what it remembers from an older epoch.
//   its end     MPI deletes the attribute, and the delete callback frees the State. No rank waits.
//               Without MPI_Init there is no attribute, and the wrapper of MPI_Comm_free frees it
//
// Stretto duplicates no communicator. Of the functions that make communicators, it needs
// MPI_Intercomm_merge alone (world_ranks.hpp). The others leave notes (noted.hpp).
// MPI_Comm_dup does not copy the attribute, so a duplicate gets a State of its own.
//
// Stretto wraps MPI_Comm_free and MPI_Comm_disconnect for this, and because callbacks that delete
// the user's attributes may still call collectives. Such a call would make a State, and no callback
// would tell Stretto of its end.
#pragma once
#include <atomic>

#include "base/options.hpp"
#include "engine/engine.hpp"
#include "mpi/entry.hpp"
#include "mpi/host.hpp"
#include "mpi/stats.hpp"

namespace stretto::mpi {

struct Schedules;    // schedules.hpp
struct Nonblocking;  // nonblocking.hpp

struct State {
  engine::Comm* engine = nullptr;  // null: members share no memory, for `reason`
  std::uint32_t served = 0;        // what the engine serves: a bit for each Collective
  std::uint32_t scheduled = 0;     // what schedules serve. What is in neither goes to the host
  Schedules* schedules = nullptr;
  Nonblocking* nonblocking = nullptr;      // null: the host serves calls with requests
  NonblockingChoice nonblocking_choice{};  // STRETTO_NONBLOCKING as agreed; off before that
  std::uint32_t withheld = 0;              // part of `served`, left to the host until members meet (nonblocking.hpp)
  Neighborhood* neighborhood = nullptr;    // null: the communicator has no topology
  int check = 0;                           // STRETTO_CHECK as agreed
  ReproducibleChoice reproducible{};       // of all members; mpi: the host serves what depends on the order
  bool has_attribute = false;              // whose deletion is the state's end
  bool agreed = false;                     // the members have agreed what serves it; until then the host does
  std::uint32_t calls = 0;                 // collectives that have ended before the agreement
  std::uint32_t calls_of_all = 0;          // those of them in which every rank waits for all others
  MPI_Comm handle{};
  int rank = 0;
  int size = 0;
  std::uint64_t serial = 0;  // n-th communicator of this process, for texts
  const char* reason = nullptr;
  int reason_rank = -1;  // the rank that declined; -1: a fact that all see
  Counters counters{};
  static constexpr std::int16_t kNotProfiled = -2;
  std::int16_t profiled = kNotProfiled;  // its number in the profile; negative: none
  std::uint32_t profiled_calls = 0;      // calls without a request so far
  State* next = nullptr;                 // in the bucket
};

extern constinit std::atomic<std::uint64_t> g_epoch;
// What observers see of this process's calls, by collective. Set while the first
// communicators are made.
extern constinit std::atomic<shm::Tally*> g_tally;
extern constinit std::atomic<bool> g_concurrent;  // threads may be in collectives at the same time
// The host's Allgather of bytes, for engine::Bootstrap. `communicator` points to an MPI_Comm.
bool allgather_bytes(void* communicator, const void* mine, void* all, std::size_t bytes);

// Notes a call that shared memory does not serve, for the watchdog and for observers. Returns the
// note for call_ended, 0 if there is none.
std::uint64_t call_noted(Collective collective, bool by_schedule);
void call_left(std::uint64_t note);  // schedules leave the call to the host
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

// The state of a communicator, made at first use. Null for a handle that names no communicator.
// `collective` is what the program calls on it.
inline State* state_of(MPI_Comm comm, Collective collective) {
  const Recent& recent = t_recent[recent_slot(comm)];
  if (recent.handle == comm && recent.epoch == g_epoch.load(std::memory_order_relaxed)) [[likely]]
    return recent.state;
  return state_find_or_create(comm, collective);
}

// The same, but null if there is no state yet.
State* state_if_any(MPI_Comm comm);

// Called after a call with result `code` on a communicator whose members have not agreed yet, or
// have to meet once more (State::withheld). It is collective over the communicator if they agree
// now.
[[gnu::cold]] void call_before_agreement(State& state, Collective collective, int code);

// Called before the host is finalized. Frees the engine's part of every communicator, and
// the process's segment.
void communicators_stop();
bool communicators_alive();
// Whether the communicator with this handle is still the one with this serial number.
[[gnu::cold]] bool communicator_lives(MPI_Comm comm, std::uint64_t serial);
// What stands for a communicator that the program may have freed, where the host needs one: itself
// as long as it lives, then MPI_COMM_SELF. Null: it is gone, and there is no MPI_COMM_SELF without
// MPI_Init.
[[gnu::cold]] MPI_Comm communicator_or_self(MPI_Comm comm, std::uint64_t serial);
// The same for MPI_Pack and MPI_Unpack, for which any communicator will do.
[[gnu::cold]] MPI_Comm communicator_to_pack(MPI_Comm comm, std::uint64_t serial);
// Makes all threads look for this communicator's state again, and so ask whether it is
// being freed (freeing.hpp). Ends the state if no attribute will.
void communicator_being_freed(MPI_Comm comm);
// Of the communicator with this handle: its number in this process, and the one that all its
// members have in common once Stretto serves it. 0: it has none yet.
[[gnu::cold]] std::uint64_t communicator_serial(MPI_Comm comm);
[[gnu::cold]] std::uint64_t communicator_generation(MPI_Comm comm);
// Calls `each` for every living state, under the lock.
void communicators_each(void (*each)(void* context, const State& state), void* context);

}  // namespace stretto::mpi
