// SPDX-License-Identifier: BSD-3-Clause
// System calls caught before the kernel runs them (Syscall User Dispatch, Linux 5.11, x86-64).
//
// In user mode (sys/faults.hpp) a system call on a guarded page fails with EFAULT. A thread with
// guarded pages therefore has its system calls caught. For each, a handler of ours runs first. It
// waits until the data is there, and lets the call run. On a virtual EPYC a caught call costs 2.3
// us more. Off costs 0.3 us, and on 13 us, most of which asks for the program's signal handlers.
//
// The kernel delivers SIGSYS for a caught call. It passes calls that come from a few instructions
// of ours, among them the return from the signal handler. Other threads are not affected. A child
// of fork, clone or vfork starts with catching off, and so does a program after execve.
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
  // Switches catching off for the thread, and runs the call as if it had not been caught. The only
  // right answer for calls that make threads or processes, change stacks, or block SIGSYS: clone,
  // fork, vfork, execve, exit, sigaltstack, prctl, arch_prctl. The handler runs within a signal
  // handler, whose return would undo them. It does not undo what rt_sigprocmask does.
  bool again = true;
  long result = 0;  // otherwise: what the program gets, or a negated errno value
};

// Runs within a signal handler, on the thread's own stack. Catching stays on, because signal
// handlers of the program may run meanwhile and their calls are caught, too. So the handler makes
// its own system calls by call_through: any other would be caught, and call the handler again.
//
// libc may hold locks around the call, for example malloc's around fork. A thread that the handler
// waits for must not need them. The handler does not see the return from the program's signal
// handlers (rt_sigreturn), which does not end catching.
using CallHandler = CallAnswer (*)(void* context, const CaughtCall& call);

// Once in a process: EBUSY. A SIGSYS that is not of a caught call goes to the handler that was
// there before. ENOTSUP: not on this machine.
int calls_install(CallHandler handler, void* context);
// Only while no thread catches calls. Gives SIGSYS the action that it had, if the handler is still
// ours.
void calls_uninstall();

// Catches the calls of this thread.
//   EDEADLK  the thread blocks SIGSYS, or a signal handler of the program does while it runs: the
//            kernel would end the process at the first call
//   EBUSY    the handler of SIGSYS is not ours
//   ENOSYS, EINVAL, EPERM, ...  the kernel or a seccomp filter refuses
int calls_on();
// Also in a forked child of a thread that caught calls.
void calls_off();

// Runs a system call that is not caught. Returns its result, or a negated errno value.
long call_through(long number, const long (&arguments)[6]);

}  // namespace stretto::sys
