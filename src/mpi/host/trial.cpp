// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/host/trial.hpp"

namespace stretto::mpi {
namespace {

// MPI_Init sets it before the program has other threads that call MPI, and MPI_Finalize resets it.
constinit bool g_is_there = false;
constinit MPI_Comm g_comm = {};

}  // namespace

// MPI_COMM_SELF has no attributes yet whose callbacks a duplicate would call.
void trial_begin() {
  if (host().Comm_dup(host().constants.comm_self, &g_comm) != MPI_SUCCESS) return;
  g_is_there = true;
  host().Comm_set_errhandler(g_comm, host().constants.errors_return);
}

void trial_end() {
  if (!g_is_there) return;
  g_is_there = false;
  host().Comm_free(&g_comm);
}

MPI_Comm trial_comm() { return g_is_there ? g_comm : host().constants.comm_null; }

}  // namespace stretto::mpi
