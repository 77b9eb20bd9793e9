// SPDX-License-Identifier: BSD-3-Clause
// Keeping the host MPI moving while a rank waits in a collective of ours (DESIGN.md rule 5): PMPI_Test on a generalized
// request that is never completed, one per thread. It enters the host's progress engine on every MPI tried and touches
// nothing of the program's.
#pragma once
#include <atomic>

namespace stretto::mpi {

extern constinit std::atomic<bool> g_windows;  // the program has made a window (entry.hpp)

// For engine::HostProgress: called by the thread that waits.
void progress_poke(void* unused);

// Completes and frees the requests of all threads, while the host still runs. A later poke starts a new one.
void progress_release();

}  // namespace stretto::mpi
