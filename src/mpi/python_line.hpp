// SPDX-License-Identifier: BSD-3-Clause
// The line of Python at which this thread is, for messages.
//
// mpi4py gives up the global interpreter lock (GIL) for the time of an MPI call. So the thread that
// waits in the call holds no lock, and it must not take one. Another thread may hold the GIL and
// wait, in an MPI call of its own, for this very call to end: that would be a deadlock. A helper
// thread that takes the GIL would hang or end in the interpreter's finalization. So this file takes
// no lock and calls no function of Python's but two that need none. It reads the interpreter's
// memory:
//
// - It reads this thread's own chain of frames only. The thread is in a call from the innermost
//   frame, so nobody changes the chain, and the frames keep their code objects alive. What it reads
//   of these never changes: names and tables of lines.
// - Every read goes through the kernel, which refuses an address that is not mapped. So no wrong
//   guess can crash the program. Where the kernel does not permit such reads, there are no lines.
// - Where fields lie depends on the version: 3.9 to 3.12 are in a table, and from 3.13 on the
//   interpreter itself says it. The types of all objects are checked. With another layout, as in a
//   debug build, the check fails, and there is no line. The same holds without a GIL (3.13t), where
//   objects are laid out otherwise.
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

// ---- For tests ----

// A table of lines, byte by byte. -1: its end.
struct LineTable {
  void* context;
  int (*next)(void* context);
};
enum class LineTableKind : std::uint8_t {
  increments,  // 3.9: co_lnotab
  ranges,      // 3.10
  locations,   // from 3.11 on
};
// The line of the instruction `offset` bytes into the code. 0: the table does not say it.
int python_line_of(LineTableKind kind, const LineTable& table, std::uint64_t offset, int first_line);

}  // namespace stretto::mpi
