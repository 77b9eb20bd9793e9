// SPDX-License-Identifier: BSD-3-Clause
// The engine's process, as far as one is set up (process_life.hpp), and what it counts and notes.
#pragma once
#include <atomic>
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

// Valid while some communicator has a state.
engine::Process& process();
// Null: there is none. The caller holds the lock.
engine::Process* process_if_any();
void process_set(engine::Process* process);
void process_destroy();

// Calls of this process that found no payload slots free, so far.
std::uint64_t process_calls_without_slots();

// Files have been added to those whose code calls. Returns false if peers must be told later.
bool process_follow_modules();

// What observers see of this process's calls, by collective. Set while the first
// communicators are made.
extern constinit std::atomic<shm::Tally*> g_tally;
// Called when the process may have got a segment, which then holds its counts.
void process_count_in_segment();

extern constinit std::atomic<bool> g_concurrent;  // threads may be in collectives at the same time

// Notes a call that shared memory does not serve, for the watchdog and for observers. Returns the
// note for call_ended, 0 if there is none.
std::uint64_t call_noted(Collective collective, bool by_schedule);
void call_left(std::uint64_t note);  // schedules leave the call to the host
void call_ended(std::uint64_t note);

}  // namespace stretto::mpi
