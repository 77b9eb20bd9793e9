// SPDX-License-Identifier: BSD-3-Clause
// A communicator's schedules (engine/scheduler.hpp) over the transport: where members share no memory, and wherever an
// option says so. The engine's functions serve such a call like any other; only what is `good` differs: a rank that
// cannot do its part sends nothing, and its peers wait as they would for a rank that never came.
#pragma once
#include "engine/scheduler.hpp"
#include "mpi/communicator.hpp"

namespace stretto::mpi {

// Collective over the communicator, whose members have these ranks in the job. Null on all members or on none; sets
// `state.scheduled`, and takes what is in it from `state.served`.
Schedules* schedules_create(State& state, const int* job_ranks, engine::Process& process);
void schedules_free(Schedules* schedules);  // local
engine::Scheduler& schedules_scheduler(Schedules& schedules);
// A call has failed or was refused here, and messages may be left behind: who has the communicator's number of the
// transport next must not receive them, so nobody gets it. That this rank does not offer it is enough: they are on
// their way to this rank.
void schedules_left_behind(Schedules& schedules);
// A call has failed here in its midst. Unless all its messages are through (its data did not fit), this rank can make
// no other one by schedule: it is no longer in step.
void schedules_failed(Schedules& schedules, Status status);
[[nodiscard]] bool schedules_broken(const Schedules& schedules);

// Whether a call that shared memory does not serve goes by schedule.
inline bool goes_by_schedule(const Call& call) {
  return call.state != nullptr && (call.state->scheduled >> static_cast<int>(call.collective()) & 1) != 0;
}

}  // namespace stretto::mpi
