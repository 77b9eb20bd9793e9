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
#include "mpi/state/state.hpp"

namespace stretto::mpi {

[[gnu::cold]] State* state_find_or_create(MPI_Comm comm, Collective collective);

// The state of a communicator, made at first use. Null for a handle that names no communicator.
// `collective` is what the program calls on it.
inline State* state_of(MPI_Comm comm, Collective collective) {
  const Recent& recent = t_recent[recent_slot(comm)];
  if (recent.handle == comm && recent.epoch == g_epoch.load(std::memory_order_relaxed)) [[likely]]
    return recent.state;
  return state_find_or_create(comm, collective);
}

// Called before the host is finalized. Frees the engine's part of every communicator, and
// the process's segment.
void communicators_stop();
// Makes all threads look for this communicator's state again, and so ask whether it is
// being freed (freeing.hpp). Ends the state if no attribute will.
void communicator_being_freed(MPI_Comm comm);

}  // namespace stretto::mpi
