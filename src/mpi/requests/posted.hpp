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

  // The call needs this operation and this datatype until it ends.
  void hold(Handle op, Handle type);
  // Copies of the program's arrays.
  Extents copy(Arguments& arguments, const Extents& extents);
  // Gives back what the program may have freed.
  void let_go();
  // Copies staged results to the program's buffers. Returns the first error code.
  int finish_data();
  // Makes the host's request, and gives it to the program. Returns the host's code.
  int request_for(const Call& made_by);
  // The call takes its turn.
  void post();

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

Posted* posted_create(Nonblocking& on);
// Of a call that has no request of the host. Null: does nothing.
void posted_free(Posted* posted);

}  // namespace stretto::mpi
