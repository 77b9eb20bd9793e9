// SPDX-License-Identifier: BSD-3-Clause
// Nonblocking collectives (MPI_Ibcast and the like) of a communicator whose members share memory,
// or have connections (request_connections.hpp) to other nodes. No message goes by the MPI.
//
//   served by   schedules over a team of their own, one after the other (engine/call_queue.hpp)
//   request     a generalized request of the host: any MPI_Wait and MPI_Test takes it
//   driven by   every wait and test of the program, every wait in a collective that Stretto serves,
//               and a thread, while the program is in neither (requests.cpp)
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
#include "engine/call_queue.hpp"
#include "mpi/function_work.hpp"
#include "mpi/request_connections.hpp"
#include "mpi/requests.hpp"
#include "mpi/serve.hpp"
#include "mpi/typed_data.hpp"

namespace stretto::mpi {

// The calls with requests of one communicator. They may outlive it.
struct Nonblocking {
  select::Rules rules;             // none: those of a file speak of blocking calls
  stretto::Array<int> job_ranks;   // the members'; empty: they all share memory
  RequestConnections connections;  // to other nodes
  engine::Scheduler scheduler;
  engine::CallQueue queue;
  std::uint32_t served = 0;   // a bit for each Collective
  Neighborhood neighborhood;  // a copy: calls may outlive the communicator
  // Guarded by the lock of requests.cpp.
  std::uint64_t users = 1;  // the communicator, and calls that have not been completed
  Nonblocking* next = nullptr;
};

// One such call. The request's free function frees it.
struct Posted : engine::Prepared {
  explicit Posted(Nonblocking& nonblocking) : Prepared(nonblocking.scheduler), on(nonblocking) {}
  ~Posted();
  // Gives back what the program may have freed.
  void let_go();
  // Copies staged results to the program's buffers. Returns the first error code.
  int finish_data();

  Nonblocking& on;
  Data data[2];
  TypedData typed[2];  // in the place of `data`, where blocks have types of their own
  FunctionWork work;   // of a reduction by a function, as the next two
  engine::Contributed contributed{*this};
  Handle held[2] = {};
  std::int64_t* arrays[2] = {};  // copies of counts and displacements
  MPI_Request request{};
  Entry entry{};
  MPI_Comm comm{};           // on which it was made
  std::uint64_t serial = 0;  // of that communicator, which may be gone
  bool given = false;        // to the program
  bool counted = false;      // in g_own_requests until a wait has ended it
  int code = MPI_SUCCESS;
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
// At MPI_Finalize: ends what can end, and the thread.
void nonblocking_finish();

// A call that has only been tried (Requested). Null: does nothing.
void posted_free(Posted* posted);

// requests.cpp
void requests_add(Nonblocking& nonblocking);
bool requests_release(Nonblocking& nonblocking);  // true: the caller has been the last user
void requests_post(Posted& posted);               // takes its turn

}  // namespace stretto::mpi
