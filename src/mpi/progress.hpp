// SPDX-License-Identifier: BSD-3-Clause
// Drives the host MPI while a rank waits in a collective that Stretto serves (ARCHITECTURE.md,
// invariant 8). A thread calls PMPI_Test on a generalized request of its own, which is never
// complete. On every MPI tried, this enters the host's progress engine. It touches nothing
// that the program owns.
#pragma once
#include <atomic>

namespace stretto::mpi {

extern constinit std::atomic<bool> g_windows;  // the program has made a window (entry.hpp)

// For engine::HostProgress. The thread that waits calls it.
void progress_poke(void* unused);

// Completes and frees the requests of all threads, while the host still runs. A
// later poke makes a new one.
void progress_release();

}  // namespace stretto::mpi
