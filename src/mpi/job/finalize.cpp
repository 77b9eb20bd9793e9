// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/finalize.hpp"

#include <atomic>
#include <cstdlib>

#include "mpi/host/entry.hpp"
#include "mpi/job/world.hpp"

namespace stretto::mpi {
namespace {

constinit Ending g_ending = {};
constinit std::atomic<bool> g_hooked{false};
constinit bool g_at_exit = false;

int never_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else, the last set first. So
// MPI still works here. The host serves all later calls.
int on_finalize(MPI_Comm, int, void*, void*) {
  const Inside inside;
  g_ending.at_finalize();
  return MPI_SUCCESS;
}

void at_exit() {
  if (g_at_exit) g_ending.at_exit();
}

}  // namespace

void ending_set(const Ending& ending) { g_ending = ending; }
void ending_is_done() { g_at_exit = false; }

void ensure_finalize_hook() {
  if (g_hooked.load(std::memory_order_relaxed)) return;
  int initialized = 0;
  host().Initialized(&initialized);
  if (!initialized) {
    if (options().stats() != StatsFormat::off && !g_at_exit) {
      g_at_exit = true;
      std::atexit(at_exit);
    }
    return;
  }
  if (g_hooked.exchange(true, std::memory_order_relaxed)) return;
  int keyval = MPI_KEYVAL_INVALID;
  if (host().Comm_create_keyval(never_copy, on_finalize, &keyval, nullptr) != MPI_SUCCESS) return;
  host().Comm_set_attr(host().constants.comm_self, keyval, nullptr);
  host().Comm_free_keyval(&keyval);
}

}  // namespace stretto::mpi
