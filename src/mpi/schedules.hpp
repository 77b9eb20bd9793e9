// SPDX-License-Identifier: BSD-3-Clause
// Collectives by schedules (engine/scheduler.hpp) over the wire: on communicators whose members share no memory, and wherever an
// option says so. Reached from the collectives' own functions when the engine does not serve a call.
//
// What goes over the wire follows from what MPI makes the same on all ranks. A rank whose own arguments are wrong leaves the call
// to the host, which raises the error: its peers wait as they would for a rank that never came.
#pragma once
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// Collective over the communicator, whose members have these ranks in the job. Null on all members or on none; sets
// `state.scheduled`, and takes what is in it from `state.served`.
Schedules* schedules_create(State& state, const int* job_ranks, const engine::Process& process);
void schedules_free(Schedules* schedules);  // local

// Whether a call that the engine does not serve is one of ours.
inline bool goes_by_schedule(const Call& call) {
  return call.state != nullptr && (call.state->scheduled >> static_cast<int>(call.collective()) & 1) != 0;
}

// As the functions of edge.hpp: false is the host's turn.
bool scheduled_barrier(Call& call);
bool scheduled_bcast(Call& call, void* buffer, std::int64_t count, Handle type, int root);
// Reduce, allreduce, scan, exscan.
bool scheduled_reduction(Call& call, const void* send, void* receive, std::int64_t count, Handle type, Handle op, int root);

}  // namespace stretto::mpi
