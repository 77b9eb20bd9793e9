// SPDX-License-Identifier: BSD-3-Clause
// The line of Python at which this thread is, for messages.
//
// mpi4py gives up the global interpreter lock (GIL) for the time of an MPI call. So the thread that
// waits in the call holds no lock, and it must not take one. Another thread may hold the GIL and
// wait, in an MPI call of its own, for this very call to end: that would be a deadlock. A helper
// thread that takes the GIL would hang or end in the interpreter's finalization. So this file takes
// no lock and calls no function of Python's but two that need none. It reads the interpreter's
// memory (observe/python_stack.hpp): of this thread's own chain of frames only. The thread is in a
// call from the innermost frame, so nobody changes the chain, and the frames keep their code
// objects alive.
#pragma once
#include <cstddef>
#include <cstdint>

#include "shm/call_sites.hpp"

namespace stretto::mpi {

// Looks for an interpreter in this process. It asks the dynamic linker. A thread that waits for an
// MPI call may hold the linker's lock, so a thread that waits itself must not call it.
[[gnu::cold]] void python_find();
// "solve.py:33 in step". Returns false and leaves `text` empty if this thread runs no Python, or if
// the line cannot be read. It takes some 5 us.
[[gnu::cold]] bool python_line(char (&text)[shm::SourceLine::kTextBytes]);

}  // namespace stretto::mpi
