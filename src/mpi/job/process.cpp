// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/process.hpp"

#include <pthread.h>

namespace stretto::mpi {

namespace {

constinit shm::Tally g_no_tally[kCollectives] = {};
constinit pthread_mutex_t g_life = PTHREAD_MUTEX_INITIALIZER;
constinit engine::Process* g_process = nullptr;

}  // namespace

constinit std::atomic<shm::Tally*> g_tally{g_no_tally};
constinit std::atomic<bool> g_concurrent{true};

ProcessLock::ProcessLock() { pthread_mutex_lock(&g_life); }
ProcessLock::~ProcessLock() { pthread_mutex_unlock(&g_life); }

engine::Process& process() { return *g_process; }
engine::Process* process_if_any() { return g_process; }

void process_set(engine::Process* process) { g_process = process; }

void process_destroy() {
  g_tally.store(g_no_tally, std::memory_order_relaxed);
  engine::process_destroy(g_process);
  g_process = nullptr;
}

std::uint64_t process_calls_without_slots() {
  const ProcessLock alive;
  return g_process == nullptr ? 0 : engine::process_calls_without_lane(*g_process);
}

// A thread that sets up or ends the process may be the one that asks.
bool process_follow_modules() {
  if (pthread_mutex_trylock(&g_life) != 0) return false;
  const bool done = g_process == nullptr || engine::process_follow_modules(*g_process);
  pthread_mutex_unlock(&g_life);
  return done;
}

void process_count_in_segment() { g_tally.store(engine::process_tally(*g_process), std::memory_order_relaxed); }

std::uint64_t call_noted(Collective collective, bool by_schedule) {
  return engine::process_note(*g_process, collective, by_schedule);
}
void call_left(std::uint64_t note) { engine::process_note_left(*g_process, note); }
void call_ended(std::uint64_t note) {
  if (g_process != nullptr) engine::process_note_end(*g_process, note);
}

}  // namespace stretto::mpi
