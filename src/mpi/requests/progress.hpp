// SPDX-License-Identifier: BSD-3-Clause
// Drives the host MPI while a rank waits in a collective that Stretto serves (ARCHITECTURE.md,
// invariant 8). Afterwards the host holds nothing that it did not hold before, and the request
// objects that it gives the program next are those that it would have given without Stretto.
#pragma once
namespace stretto::mpi {

// For engine::HostProgress. The thread that waits calls it.
void progress_poke(void* unused);

}  // namespace stretto::mpi
