// SPDX-License-Identifier: BSD-3-Clause
// What Stretto knows of each communicator. Its life is in communicator.hpp.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/options.hpp"
#include "engine/engine.hpp"
#include "mpi/host/entry.hpp"
#include "mpi/host/host.hpp"
#include "observe/totals.hpp"

namespace stretto::mpi {

using observe::Counter;
using observe::Counters;

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

// While one thread alone has called: its t_recent, and what is to be done when another one calls.
struct OnlyThread {
  std::atomic<const Recent*> recent{nullptr};  // null: none has called yet
  void (*another_calls)() = nullptr;           // set before `recent`
};
extern constinit OnlyThread g_only_thread;
// Called when a thread looks for a communicator for the first time. A session may allow more than
// the level of MPI_Init. So threads count as concurrent as soon as a second one calls.
void notice_thread();

// The state of a communicator. Null: there is none yet, the communicator is being freed, or the
// handle names none.
State* state_if_any(MPI_Comm comm);

// ---- The table of states ----

State* state_find(MPI_Comm comm);
// Gives it its serial number.
void state_add(State& state);
// Makes threads forget it. `last` is called under the lock.
void state_remove(State& state, void (*last)(const State& state));
// Calls `each` for every living state, under the lock.
void communicators_each(void (*each)(void* context, const State& state), void* context);
void communicators_change(void (*each)(State& state));

// Whether the communicator with this handle is still the one with this serial number.
[[gnu::cold]] bool communicator_lives(MPI_Comm comm, std::uint64_t serial);
// What stands for a communicator that the program may have freed, where the host needs one: itself
// as long as it lives, then MPI_COMM_SELF. Null: it is gone, and there is no MPI_COMM_SELF without
// MPI_Init.
[[gnu::cold]] MPI_Comm communicator_or_self(MPI_Comm comm, std::uint64_t serial);
// The same for MPI_Pack and MPI_Unpack, for which any communicator will do.
[[gnu::cold]] MPI_Comm communicator_to_pack(MPI_Comm comm, std::uint64_t serial);
// Of the communicator with this handle: its number in this process, and the one that all its
// members have in common once Stretto serves it. 0: it has none yet.
[[gnu::cold]] std::uint64_t communicator_serial(MPI_Comm comm);
[[gnu::cold]] std::uint64_t communicator_generation(MPI_Comm comm);

}  // namespace stretto::mpi
