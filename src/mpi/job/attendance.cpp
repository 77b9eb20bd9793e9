// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/attendance.hpp"

#include <pthread.h>

#include "base/locked.hpp"
#include "base/log.hpp"
#include "base/tuning.hpp"
#include "engine/attendance.hpp"
#include "mpi/job/world.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

constinit vendor::Launched g_launched = {};
constinit engine::Attendance g_attendance = {};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

}  // namespace

void attendance_begin() {
  g_launched = vendor::launched();
  if (g_launched.job != 0 && g_launched.slots > 1)
    (void)g_attendance.enter(g_launched.job, g_launched.slot, g_launched.slots);
}

void attendance_end() {
  const Locked locked(g_lock);
  g_attendance.leave();
}

void attendance_leave_to_parent() { g_attendance.leave(); }

bool node_is_known() {
  return g_world.size > 1 && g_launched.job != 0 && g_launched.slots > 1 && g_launched.size == g_world.size &&
         g_launched.rank == g_world.rank;
}

bool node_has_library(std::uint64_t patience_ns) {
  engine::Attendance::Verdict verdict;
  {
    const Locked locked(g_lock);
    verdict = g_attendance.verdict(patience_ns);
  }
  if (verdict.first && !verdict.all) {
    log_line(LogLevel::warn,
             "off: the library is seen in %u of %u ranks on this node; preload it into all ranks of the job, or into "
             "none",
             verdict.present, g_launched.slots);
  }
  return verdict.all;
}

bool session_has_library() {
  const bool all_are_here = g_launched.slots > 1 && static_cast<int>(g_launched.slots) == g_launched.size;
  return g_launched.job == 0 || !all_are_here || node_has_library(kTuning.attendance_patience_ns);
}

void say_if_alone() {
  if (g_world.size != 1 || g_launched.size < 2 || g_launched.rank != 0 || !options().enabled()) return;
  log_line(LogLevel::warn,
           "%d processes were started together, and each of them is an MPI job of one rank: %s does not know this "
           "launcher. Use the mpiexec of this MPI%s%s",
           g_launched.size, vendor::kFamily, g_launched.slurm ? ", or srun " : "",
           g_launched.slurm ? vendor::kSrunOption : "");
}

}  // namespace stretto::mpi
