// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm/process_life.hpp"

#include "engine/settings.hpp"
#include "mpi/data/datatype.hpp"
#include "mpi/host/call_sites.hpp"
#include "mpi/host/windows.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/process.hpp"
#include "mpi/job/world.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/state/errors.hpp"
#include "mpi/state/state.hpp"
#include "mpi/vendor/vendor.hpp"
#include "mpi/waits/program_waits.hpp"

namespace stretto::mpi {
namespace {

// Under the lock.
constinit unsigned g_users = 0;    // how many states live or are being made
constinit bool g_started = false;  // datatypes are set up

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
  engine::process_set_concurrent(process(), concurrent);
}

void another_thread_calls() {
  if (g_concurrent.load(std::memory_order_relaxed)) return;
  const ProcessLock alive;
  if (process_if_any() != nullptr && g_started) set_concurrent(true);
}

}  // namespace

bool process_enter() {
  const ProcessLock alive;
  if (process_if_any() == nullptr) {
    call_sites_followed_by(process_follow_modules);
    process_set(engine::process_create(settings(), {nullptr, progress_poke, vendor::poke_every(), &g_windows},
                                       {&g_call_modules, call_site_locate}));
    if (process_if_any() == nullptr) return false;
  }
  if (!g_started) {
    set_concurrent(threads_are_concurrent());
    g_only_thread.another_calls = another_thread_calls;
    g_only_thread.recent.store(t_recent, std::memory_order_release);  // pairs with notice_thread
    process_count_in_segment();
    if (!world().agreed) waiting_begin();  // a program with sessions alone
    g_started = true;
  }
  ++g_users;
  return true;
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

bool communicators_alive() {
  const ProcessLock alive;
  return g_users != 0;
}

void process_stop() {
  process_destroy();
  errors_stop();
  datatypes_stop();
}

}  // namespace stretto::mpi
