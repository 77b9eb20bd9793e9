// SPDX-License-Identifier: BSD-3-Clause
// What all communicators of this process need: the engine's process, and what is set up in the
// host. The first state brings it up, the last one takes it down.
#pragma once
#include <cstdint>

#include "base/collective.hpp"
#include "engine/engine.hpp"

namespace stretto::mpi {

// Held while the first state brings up what all need, and while the last one takes it down.
class ProcessLock {
 public:
  ProcessLock();
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;
};

// One more state. Returns false for want of memory.
bool process_enter();
// One state less. Between sessions nothing of ours may stay in the host; with MPI_Init the finalize
// hook sees to it. A thread that enters meanwhile waits until all is down.
void process_leave();
// A thread has looked for a communicator for the first time. A session may allow what the level of
// MPI_Init does not: so threads are concurrent as soon as a second one calls.
void process_notice_thread();
// Between process_enter and process_leave.
engine::Process& process();
// The process has a segment now, or may have: its counts lie there.
void process_count_in_segment();
// Before the host goes, under the lock, when no state uses the process any more.
void process_stop();

}  // namespace stretto::mpi
