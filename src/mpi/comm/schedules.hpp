// SPDX-License-Identifier: BSD-3-Clause
// A communicator's schedules (engine/scheduler.hpp) over the transport. They serve calls whose
// members share no memory, and calls for which an option asks it. The engine's functions serve them
// like any other call. Only a rank that cannot do its part differs: it sends nothing, and its peers
// wait for it as for a rank that never came.
#pragma once
#include "engine/scheduler.hpp"
#include "mpi/state/call.hpp"
#include "mpi/state/state.hpp"

namespace stretto::mpi {

class Overlap;  // overlap.hpp

// Collective over the communicator. `job_ranks` are the members' ranks in the job. Returns null on
// all members or on none. Sets `state.scheduled` and takes these collectives from `state.served`.
// Tells the engine which algorithms over shared memory the rules name.
Schedules* schedules_create(State& state, const int* job_ranks, engine::Process& process);
void schedules_free(Schedules* schedules);  // local
engine::Scheduler& schedules_scheduler(Schedules& schedules);
Overlap& schedules_overlap(Schedules& schedules);
// Called when a call has failed or was refused on this rank, which may leave messages to this rank
// unread. The next communicator with the same transport number must not receive them, so this rank
// never gives the number back. That is enough: the messages are on their way to this rank.
void schedules_left_behind(Schedules& schedules);
// Called when a call has failed on this rank after it began. If the data did not fit, all messages
// of the call have arrived. In any other case this rank is out of step and makes no more calls by
// schedule on this communicator.
void schedules_failed(Schedules& schedules, Status status);
[[nodiscard]] bool schedules_broken(const Schedules& schedules);

// Whether a call that shared memory does not serve goes by schedule.
inline bool goes_by_schedule(const Call& call) {
  return call.state != nullptr && (call.state->scheduled >> static_cast<int>(call.collective()) & 1) != 0;
}

}  // namespace stretto::mpi
