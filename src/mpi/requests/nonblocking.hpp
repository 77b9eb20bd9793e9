// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives (MPI_Ibcast and the like) of a communicator whose members share memory,
// or have connections (request_connections.hpp) to other nodes. No message goes by the MPI.
//
//   served by   schedules over a team of their own, one after the other (engine/call_queue.hpp)
//   request     a generalized request of the host: any MPI_Wait and MPI_Test takes it
//   driven by   every wait and test of the program, every wait in a collective that Stretto serves,
//               and a thread, while the program is in neither (request_queue.hpp)
//   ended by    a thread of the program, in such a wait or test: only these call the host
//
// What all members know decides whether Stretto serves a call: the options that they have agreed
// on, the collective, and for reductions the operation and the datatype. All calls with requests on
// a communicator are served alike from the agreement on. Before it, the host serves them.
//
// STRETTO_NONBLOCKING=auto: most programs make no such call, and should not pay for a second team.
// After the first such call, the host serves the blocking calls in which every rank waits for all
// others. In the next of these the members meet and make the team. All ranks make their collectives
// on a communicator in one order, blocking or not, so they meet in the same call.
#pragma once
#include "base/array.hpp"
#include "base/neighborhood.hpp"
#include "engine/scheduler.hpp"
#include "mpi/requests/request_connections.hpp"
#include "mpi/requests/request_queue.hpp"
#include "mpi/state/state.hpp"
#include "select/rules.hpp"

namespace stretto::mpi {

// The calls with requests of one communicator. They may outlive it.
struct Nonblocking : RequestQueue {
  select::Rules rules;             // none: those of a file speak of blocking calls
  Array<int> job_ranks;            // the members'; empty: they all share memory
  RequestConnections connections;  // to other nodes
  engine::Scheduler scheduler;
  std::uint32_t served = 0;   // a bit for each Collective
  Neighborhood neighborhood;  // a copy: calls may outlive the communicator
};

// Called in the agreement: serves calls with requests, or lets the first of them ask for that.
// Collective over the communicator. `job_ranks` are its members' ranks in the job, or null if that
// is not known.
void nonblocking_agreed(State& state, const int* job_ranks, engine::Process& process);
// The members meet because such a call has asked. Collective over the communicator.
void nonblocking_meet(State& state, engine::Process& process);
// For one persistent request of a communicator of which some are served. Collective over the
// communicator. Null on all members or on none.
Nonblocking* nonblocking_create_like(State& state, engine::Process& process);
// The communicator ends. Calls on it go on.
void nonblocking_free(Nonblocking* nonblocking);
// Whether the next call with a request makes the members meet.
bool nonblocking_may_ask(const State& state);

}  // namespace stretto::mpi
