// SPDX-License-Identifier: BSD-3-Clause
// What all communicators of this process need: the engine's process, and what Stretto sets up in
// the host. The first state sets it up, the last one ends it.
#pragma once

namespace stretto::mpi {

// Counts one more state. Returns false if there is no memory.
bool process_enter();
// Counts one state less. Between sessions nothing of ours may stay in the host. After MPI_Init the
// finalize hook takes care of that. A thread that enters meanwhile waits until all has ended.
void process_leave();
bool communicators_alive();
// Called before the host is finalized, when no state uses the process any more. The
// caller holds the lock.
void process_stop();

}  // namespace stretto::mpi
