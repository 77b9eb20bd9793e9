// SPDX-License-Identifier: BSD-3-Clause
// How a call waits in the host's place (program_waits.hpp): it tests, and between tests gives the
// processor away.
#pragma once
#include "mpi/requests/own_requests.hpp"
#include "mpi/vendor/vendor.hpp"
#include "shm/waiter.hpp"

namespace stretto::mpi {

// Set at MPI_Init, before any wait.
extern constinit shm::WaitPolicy g_wait_policy;
extern constinit unsigned g_wait_looks;  // tests before the first that gives the processor away

// Calls `test` until it returns true. The first tests come at once: what is there already costs no
// more than the host's own call.
template <class Test>
void wait_until(const Test& test) {
  struct Wait {
    const Test& test;
    bool over;
  } wait = {test, false};
  for (unsigned looks = 0; looks < g_wait_looks; ++looks) {
    if (test()) return;
    drive_own_requests();
  }
  shm::WaitPolicy policy = g_wait_policy;
  policy.host = &wait;
  policy.poke = [](void* data) {
    drive_own_requests();
    auto& tested = *static_cast<Wait*>(data);
    if (!tested.over) tested.over = tested.test();
  };
  shm::Waiter waiter(policy);
  while (!wait.over) waiter.step();
}

// What a test leaves alone if it fails. MPICH 5 returns MPI_SUCCESS when a handler of the program
// has returned, so the code does not tell.
inline constexpr int kUntouched = -1;

// Some hosts say in the status of MPI_Sendrecv_replace that there was no error.
inline void clear_error(MPI_Status* status) {
  if (vendor::waits_clear_errors() && status != MPI_STATUS_IGNORE) status->MPI_ERROR = MPI_SUCCESS;
}

}  // namespace stretto::mpi
