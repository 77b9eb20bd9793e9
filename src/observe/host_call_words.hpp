// SPDX-License-Identifier: BSD-3-Clause
// A call that the MPI serves (shm/host_calls.hpp), in the user's words.
#pragma once
#include "shm/call_sites.hpp"
#include "shm/host_calls.hpp"

namespace stretto::observe {

// "from 1, tag 99, 8 bytes, on MPI_COMM_WORLD".
struct AwaitedWords {
  char text[300];
  // `modules` say where the request was made, if the call is another one.
  AwaitedWords(const shm::Awaited& part, const shm::Modules& modules, bool made_elsewhere);
};

// "MPI_Recv (from 1, tag 99, 8 bytes, on MPI_COMM_WORLD)".
struct HostCallWords {
  char text[600];
  HostCallWords(const shm::HostCall& call, const shm::Modules& modules);
};

// "solve.py:33 in step" or "/path/app+0x1234". Empty: not known.
struct HostCallSite {
  char text[sizeof shm::CallSite::text];
  HostCallSite(const shm::HostCall& call, const shm::Modules& modules);
};

}  // namespace stretto::observe
