// SPDX-License-Identifier: BSD-3-Clause
// System calls caught before the kernel runs them (Syscall User Dispatch, Linux 5.11, x86-64).
//
// In user mode (sys/faults.hpp) a system call on a guarded page fails with EFAULT. So a thread with
// guarded pages has its system calls caught. A handler of ours is called in place of each, waits
// until the data are there, and lets it run. 3 us a caught call, 1 us to switch on and off.
//
// The kernel delivers SIGSYS. It lets calls pass that come from a few instructions of ours, among
// them those that return from the signal handler. Threads that are not switched on are as ever. A
// child of fork, clone or vfork starts with catching off, and so does a new program.
//
// Contract: as sys/sys.hpp.
#pragma once
#include <cstdint>

namespace stretto::sys {

struct CaughtCall {
  long number = -1;            // as in <sys/syscall.h>; -1: of a 32-bit table, only `again` serves it
  long arguments[6] = {};      // unused ones hold anything
  const void* from = nullptr;  // the instruction behind the call
};

struct CallAnswer {
  // Catching is switched off for the thread, and the call runs as if it had not been caught. For
  // calls that make threads or processes, or that change stacks, signal masks or signal handlers
  // (clone, fork, vfork, execve, exit, rt_sig*, sigaltstack, prctl, arch_prctl): the handler is
  // itself within a signal handler.
  bool again = true;
  long result = 0;  // otherwise: what the program gets, or a negated errno value
};

// Runs within a signal handler on the thread's own stack. Catching is on, so that calls of the
// program's other signal handlers, which may run within, are caught as well. So it makes system
// calls by call_through only: any other call is caught and calls the handler from within itself.
using CallHandler = CallAnswer (*)(void* context, const CaughtCall& call);

// Once for the process. EBUSY: SIGSYS has a handler or is ignored, so somebody else traps calls.
// ENOTSUP: not on this machine.
int calls_install(CallHandler handler, void* context);
// When no thread catches calls any more. SIGSYS has its default action again, if it was ours still.
void calls_uninstall();

// For this thread.
//   EDEADLK  the thread, or a signal handler of the program while it runs, blocks SIGSYS: there the
//            kernel would end the process at the first call
//   EBUSY    the handler of SIGSYS is not ours, or not any more
//   ENOSYS, EINVAL, EPERM, ...  the kernel or a seccomp filter refuses
// 5 us of it ask for all signal handlers.
int calls_on();
// Nothing if they are off. The thread that calls it may be a child of one that had them on.
void calls_off();

// Runs a system call that is not caught. The result, or a negated errno value.
long call_through(long number, const long (&arguments)[6]);

}  // namespace stretto::sys
