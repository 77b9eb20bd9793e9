// SPDX-License-Identifier: BSD-3-Clause
// What all communicators of this process need: the engine's process, and what Stretto sets up in
// the host. The first state sets it up, the last one ends it.
#pragma once
#include <cstdint>

#include "base/collective.hpp"
#include "engine/engine.hpp"

namespace stretto::mpi {

// Held while the first state sets up what all need, and while the last one ends it.
class ProcessLock {
 public:
  ProcessLock();
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
};

// Counts one more state. Returns false if there is no memory.
bool process_enter();
// Counts one state less. Between sessions nothing of ours may stay in the host. After MPI_Init the
// finalize hook takes care of that. A thread that enters meanwhile waits until all has ended.
void process_leave();
// Called when a thread looks for a communicator for the first time. A session may allow more than
// the level of MPI_Init. So threads count as concurrent as soon as a second one calls.
void process_notice_thread();
// Valid between process_enter and process_leave.
engine::Process& process();
// Calls of this process that found no payload slots free, so far.
std::uint64_t process_calls_without_slots();
// Files have been added to those whose code calls. Returns false if peers must be told later.
bool process_follow_modules();
// Called when the process may have got a segment, which then holds its counts.
void process_count_in_segment();
// Called before the host is finalized, when no state uses the process any more. The
// caller holds the lock.
void process_stop();

}  // namespace stretto::mpi
