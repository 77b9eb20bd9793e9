// SPDX-License-Identifier: BSD-3-Clause
// Who else may have the kernel use this process's memory.
//
// In user mode and by signals a system call on a guarded page fails (sys/faults.hpp). The calls of
// one thread are caught (sys/calls.hpp). Nothing catches those of another thread: its write(2) of
// guarded pages would be short, and some callers lose data without an error. glibc's helpers of
// POSIX AIO and io_uring's workers are such threads. Another process may read this one's memory. So
// these modes serve a process with one thread and no children.
//
// Threads that MPI_Init has started are the MPI's. They use memory that the program has given to
// the MPI. It may not receive into such memory meanwhile, so these threads leave a guarded buffer
// alone. But handlers of the program's signals may run on them.
//
// The kernel itself writes the frame of a signal to the stack. If it cannot, it ends the process.
//
// Contract: as sys/sys.hpp. Catching may be on: these functions make no call that is caught.
#pragma once
#include <cstdint>

#include "sys/faults.hpp"

namespace stretto::sys {

// Around the host's MPI_Init: which threads and which handlers of signals are the MPI's.
void access_before_init();
void access_after_init();

// The signals whose handlers may run at any time: bit n - 1 is signal n's. Neither the MPI's
// handlers count, nor those of signals that end a program, as Fortran's runtime has them.
std::uint64_t handled_signals();

// Whether this is the only thread, beside Stretto's and the MPI's.
bool is_only_thread();
bool has_threads_of_mpi();  // if this is the only thread otherwise
// Whether another thread may run a handler of one of these signals, of which bit n - 1 is n's.
bool runs_handlers_elsewhere(std::uint64_t signals);
// Also those that have ended, and that nobody has waited for.
bool has_children();
// Whether the kernel may put the frame of a signal there. This thread's stack and its alternate
// stack are such memory. All memory is, if the thread runs on another stack, as fibres do.
bool is_stack(Pages pages);

}  // namespace stretto::sys
