// SPDX-License-Identifier: BSD-3-Clause
#include "sys/stopped_threads.hpp"

#include <elf.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "sys/detail.hpp"
#include "sys/fault.hpp"

namespace stretto::sys {

namespace {

using detail::ErrnoKept;
using detail::retried;

#if defined(__x86_64__)
void translate(const user_regs_struct& from, ThreadRegisters* to) {
  const std::uint64_t all[kUnwoundRegisters] = {from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi,
                                                from.rbp, from.rsp, from.r8,  from.r9,  from.r10, from.r11,
                                                from.r12, from.r13, from.r14, from.r15, from.rip};
  for (unsigned i = 0; i < kUnwoundRegisters; ++i) to->of[i] = all[i];
  to->pc = from.rip;
}
#elif defined(__aarch64__)
void translate(const user_regs_struct& from, ThreadRegisters* to) {
  for (unsigned i = 0; i < 31; ++i) to->of[i] = from.regs[i];
  to->of[31] = from.sp;
  to->pc = from.pc;
}
#endif

int registers_of(int thread, ThreadRegisters* registers) {
  user_regs_struct raw;
  iovec place{&raw, sizeof raw};
  if (ptrace(PTRACE_GETREGSET, thread, reinterpret_cast<void*>(NT_PRSTATUS), &place) != 0) return errno;
  translate(raw, registers);
  return 0;
}

// A thread in the midst of a system call that nothing interrupts (a file server that is gone) does
// not stop.
int wait_for_stop(int thread, int* status) {
  constexpr int kLooks = 500;
  constexpr timespec kPause{0, 1'000'000};
  for (int look = 0; look < kLooks; ++look) {
    const pid_t found = retried([&] { return waitpid(thread, status, __WALL | WNOHANG); });
    if (found < 0) return errno;
    if (found == thread) return WIFSTOPPED(*status) ? 0 : ESRCH;
    (void)nanosleep(&kPause, nullptr);
  }
  return ETIMEDOUT;
}

// The thread may have been stopped for another reason before the interrupt came: it is stopped, and
// that is enough. A signal that came meanwhile is handed on. The kernel lets a thread that has not
// stopped go when its tracer ends, which is soon.
int stopped(int thread, WhileStopped visit, void* context) {
  if (const int error = fault::strike("thread_stopped")) return error;
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) return errno;
  int status = 0;
  int error = ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ? errno : wait_for_stop(thread, &status);
  if (error != 0) return error;
  const bool is_event = status >> 16 != 0;  // of ptrace, or of a group stop
  const std::intptr_t signal = is_event ? 0 : WSTOPSIG(status);
  ThreadRegisters registers;
  error = registers_of(thread, &registers);
  if (error == 0) visit(context, registers);
  (void)ptrace(PTRACE_DETACH, thread, nullptr, reinterpret_cast<void*>(signal));
  return error;
}

struct Task {
  int thread;
  WhileStopped visit;
  void* context;
  int error;
};

int help(void* data) {
  auto& task = *static_cast<Task*>(data);
  task.error = stopped(task.thread, task.visit, task.context);
  return 0;
}

}  // namespace

int thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

int thread_stopped(int thread, WhileStopped visit, void* context) {
  const ErrnoKept kept;
  errno = 0;
  return stopped(thread, visit, context);
}

int own_thread_stopped(int thread, WhileStopped visit, void* context) {
  constexpr std::size_t kStackBytes = 256 << 10;
  const ErrnoKept kept;
  if (thread == thread_id()) return EINVAL;
#if defined(__SANITIZE_THREAD__)
  return ENOSYS;  // it does not know of a process that shares memory
#endif
  Task task = {thread, visit, context, EPERM};
  errno = 0;
  // Where yama allows a process to be traced by its ancestors only. Elsewhere the call fails.
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const int error = detail::run_beside(help, &task, kStackBytes, CLONE_UNTRACED);
  (void)prctl(PR_SET_PTRACER, 0, 0, 0, 0);
  return error != 0 ? error : task.error;
}

}  // namespace stretto::sys
