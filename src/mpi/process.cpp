// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/process.hpp"

#include <pthread.h>

#include <atomic>

#include "engine/settings.hpp"
#include "mpi/call_sites.hpp"
#include "mpi/communicator.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errors.hpp"
#include "mpi/job.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/noted.hpp"
#include "mpi/progress.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waiting.hpp"

namespace stretto::mpi {

constinit shm::Tally g_no_tally[kCollectives] = {};
constinit std::atomic<shm::Tally*> g_tally{g_no_tally};
constinit std::atomic<bool> g_concurrent{true};

namespace {

constinit pthread_mutex_t g_life = PTHREAD_MUTEX_INITIALIZER;
constinit engine::Process* g_process = nullptr;
constinit unsigned g_users = 0;    // how many states live or are being made
constinit bool g_started = false;  // datatypes are set up
// The t_recent of the only thread that has called so far, while g_concurrent is false.
constinit std::atomic<const Recent*> g_caller{nullptr};

engine::Settings settings() {
  engine::Settings s = engine::settings_from(options());
  s.ranks_on_node = vendor::launcher_ranks_on_node();
  s.version = STRETTO_VERSION;
  const int rank = world().agreed ? world().rank : vendor::launcher_rank();
  s.job = static_cast<std::uint64_t>(world().job);
  s.job_rank = static_cast<std::uint64_t>(rank > 0 ? rank : 0);
  s.binding = job_binding(rank > 0 ? rank : 0);
  s.job_ranks = static_cast<std::uint64_t>(world().size);
  return s;
}

// A program with sessions alone has no thread level to ask for, so the answer is yes.
bool threads_are_concurrent() {
  int initialized = 0, level = MPI_THREAD_MULTIPLE;
  host().Initialized(&initialized);
  if (initialized) host().Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

void set_concurrent(bool concurrent) {
  g_concurrent.store(concurrent, std::memory_order_relaxed);
  datatypes_start(concurrent);
  engine::process_set_concurrent(*g_process, concurrent);
}

}  // namespace

bool process_enter() {
  const ProcessLock alive;
  if (g_process == nullptr) {
    g_process = engine::process_create(settings(), {nullptr, progress_poke, vendor::poke_every(), &g_windows},
                                       {&g_call_modules, call_site_locate});
    if (g_process == nullptr) return false;
  }
  if (!g_started) {
    set_concurrent(threads_are_concurrent());
    g_caller.store(t_recent, std::memory_order_relaxed);
    g_tally.store(engine::process_tally(*g_process), std::memory_order_relaxed);
    if (!world().agreed) waiting_begin();  // a program with sessions alone
    g_started = true;
  }
  g_users++;
  return true;
}

void process_notice_thread() {
  const Recent* const caller = g_caller.load(std::memory_order_relaxed);
  if (g_concurrent.load(std::memory_order_relaxed) || caller == nullptr || caller == t_recent) return;
  const ProcessLock alive;
  if (g_process != nullptr && g_started) set_concurrent(true);
}

void process_leave() {
  const ProcessLock alive;
  if (--g_users != 0 || !g_started) return;
  int initialized = 0;
  host().Initialized(&initialized);
  if (initialized) return;
  g_started = false;
  waiting_end();
  errors_stop();
  datatypes_stop();
}

engine::Process& process() { return *g_process; }

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

ProcessLock::ProcessLock() { pthread_mutex_lock(&g_life); }
ProcessLock::~ProcessLock() { pthread_mutex_unlock(&g_life); }

std::uint64_t call_noted(Collective collective, bool by_schedule) {
  return engine::process_note(*g_process, collective, by_schedule);
}
void call_left(std::uint64_t note) { engine::process_note_left(*g_process, note); }
void call_ended(std::uint64_t note) {
  if (g_process != nullptr) engine::process_note_end(*g_process, note);
}

bool communicators_alive() {
  const ProcessLock alive;
  return g_users != 0;
}

void process_stop() {
  noted_end();
  g_tally.store(g_no_tally, std::memory_order_relaxed);
  engine::process_destroy(g_process);
  g_process = nullptr;
  errors_stop();
  datatypes_stop();
}

}  // namespace stretto::mpi
