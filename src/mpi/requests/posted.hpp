// SPDX-License-Identifier: BSD-3-Clause
// One call with a request, and all that it needs until it ends.
#pragma once
#include "engine/prepared.hpp"
#include "mpi/data/data.hpp"
#include "mpi/data/function_work.hpp"
#include "mpi/data/typed_data.hpp"
#include "mpi/requests/nonblocking.hpp"

namespace stretto::mpi {

// The request's free function frees it.
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

// The call, if Stretto serves its collective on this communicator by requests. Null: the host does.
[[gnu::cold]] Posted* posted_begin(Call& call, Handle comm);
// Frees it, unless it has been given to the program, or to the persistent request that tries it.
[[gnu::cold]] void posted_end(Call& call, Posted* posted);
Data& posted_data(Posted& posted, int which);
TypedData& posted_typed(Posted& posted, int which);
engine::Prepared& posted_prepared(Posted& posted);
FunctionWork& posted_work(Posted& posted);
engine::Contributed& posted_contributed(Posted& posted);
// The call needs this operation and this datatype until it ends.
void posted_hold(Posted& posted, Handle op, Handle type);
// Ends a call whose arguments are wrong, or whose data could not be packed.
[[gnu::cold]] bool posted_refuse(Call& call, const Arguments& arguments);
// Gives the program its request.
bool posted_go(Call& call, Posted& posted, const engine::Outcome& prepared);
// Copies of the program's arrays.
Extents posted_extents(Posted& posted, Arguments& arguments, const Extents& extents);
// A call that has only been tried (Requested). Null: does nothing.
void posted_free(Posted* posted);

}  // namespace stretto::mpi
