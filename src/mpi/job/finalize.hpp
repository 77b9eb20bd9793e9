// SPDX-License-Identifier: BSD-3-Clause
// How Stretto learns that the MPI, or the process, ends.
#pragma once

namespace stretto::mpi {

// What is called then. Set once, before any call is served.
struct Ending {
  void (*at_finalize)() = nullptr;  // MPI still works
  void (*at_exit)() = nullptr;      // a program with sessions alone has no MPI_Finalize
};
void ending_set(const Ending& ending);
// The report is out, or another process makes it: nothing is to be done at the exit.
void ending_is_done();

// Makes sure that MPI_Finalize calls Stretto. Called whenever a communicator gets state;
// later calls do nothing.
void ensure_finalize_hook();

}  // namespace stretto::mpi
