// SPDX-License-Identifier: BSD-3-Clause
#include "sys/calls.hpp"

#include <sys/prctl.h>
#include <ucontext.h>

#include <atomic>
#include <cstring>

#include "sys/actions.hpp"
#include "sys/detail.hpp"
#include "sys/fault.hpp"

namespace stretto::sys {

#if defined(__x86_64__) && defined(__LP64__)

// The instructions whose calls pass. The kernel compares the address behind the `syscall`, which so
// must not be the end. Debuggers and unwinders know the return from a signal handler by its bytes.
asm(R"(
  .pushsection .text
  .balign 64
  .hidden stretto_calls_begin, stretto_calls_return, stretto_calls_end
  .globl stretto_calls_begin, stretto_calls_return, stretto_calls_end
  .type stretto_calls_begin, @function
stretto_calls_begin:
  movq %rdi, %rax
  movq (%rsi), %rdi
  movq 16(%rsi), %rdx
  movq 24(%rsi), %r10
  movq 32(%rsi), %r8
  movq 40(%rsi), %r9
  movq 8(%rsi), %rsi
  syscall
  ret
  .size stretto_calls_begin, . - stretto_calls_begin
  nop
  .type stretto_calls_return, @function
stretto_calls_return:
  movq $15, %rax
  syscall
  ud2
  .size stretto_calls_return, . - stretto_calls_return
stretto_calls_end:
  .popsection
)");
extern "C" const char stretto_calls_end[];

namespace {

using detail::Action;
using detail::action_get;
using detail::action_set;
using detail::call;
using detail::ErrnoKept;
using detail::number_of;

// Newer than some kernel headers that Stretto is built with.
constexpr int kDispatch = 59;  // PR_SET_SYSCALL_USER_DISPATCH
constexpr unsigned long kDispatchOff = 0, kDispatchOn = 1;
constexpr char kAllow = 0, kBlock = 1;
constexpr int kUserDispatch = 2;          // si_code
constexpr unsigned kX86_64 = 0xc000003e;  // si_arch
constexpr int kSyscallBytes = 2;          // of the instruction

constinit std::atomic<CallHandler> g_handler{nullptr};
constinit std::atomic<void*> g_context{nullptr};
constinit Action g_before = {};  // the action of SIGSYS that ours has replaced

// The kernel reads it at each system call of a thread that is on.
[[gnu::tls_model("initial-exec")]] constinit thread_local volatile char t_selector = kAllow;

void switch_off() {
  t_selector = kAllow;
  (void)call(SYS_prctl, kDispatch, kDispatchOff);
}

// A SIGSYS that is not of our making does what it did before ours: by default it ends the process.
// Fortran's runtime has a handler that prints where the program is, and sandboxes have one for the
// calls that they forbid.
void pass_on(int signal, siginfo_t* info, void* context) {
  if (!detail::is_default(g_before)) {
    if (!detail::is_ignored(g_before)) g_before.handler(signal, info, context);
    return;
  }
  (void)action_set(SIGSYS, {});
  (void)call(SYS_tgkill, call(SYS_getpid), call(SYS_gettid), SIGSYS);
}

// The return from a handler restores the mask of its frame. Our handler blocks nothing more, so the
// thread's mask is the program's.
void keep_mask(ucontext_t* frame) {
  std::uint64_t mask = 0;
  if (call(SYS_rt_sigprocmask, SIG_BLOCK, 0, number_of(&mask), detail::kMaskBytes) == 0)
    std::memcpy(&frame->uc_sigmask, &mask, sizeof mask);
}

void on_sigsys(int signal, siginfo_t* info, void* context) {
  const ErrnoKept kept;
  if (info->si_code != kUserDispatch) {
    switch_off();
    pass_on(signal, info, context);
    return;
  }
  greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  // A signal handler of the program returns by libc's instructions. The stack is as the kernel
  // wants it, so that ours do the same. They are not caught.
  if (info->si_arch == kX86_64 && info->si_syscall == SYS_rt_sigreturn) {
    registers[REG_RIP] = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(stretto_calls_return));
    return;
  }
  CaughtCall caught;
  if (info->si_arch == kX86_64) caught.number = info->si_syscall;
  constexpr int kArguments[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};
  for (int i = 0; i < 6; ++i) caught.arguments[i] = static_cast<long>(registers[kArguments[i]]);
  caught.from = info->si_call_addr;
  const CallAnswer answer =
      g_handler.load(std::memory_order_acquire)(g_context.load(std::memory_order_relaxed), caught);
  if (answer.again || caught.number < 0) {
    switch_off();
    registers[REG_RIP] -= kSyscallBytes;  // RAX holds the number again
  } else {
    registers[REG_RAX] = answer.result;
    if (caught.number == SYS_rt_sigprocmask) keep_mask(static_cast<ucontext_t*>(context));
  }
}

bool is_ours(const Action& action) { return action.handler == on_sigsys; }

int check_action() {
  Action action{};
  if (const int error = fault::strike("calls_on.action")) return error;
  if (const int error = action_get(SIGSYS, &action)) return error;
  return is_ours(action) ? 0 : EBUSY;
}

int check_blocked() {
  bool blocks = false;
  if (const int error = fault::strike("calls_on.mask")) return error;
  if (const int error = detail::check_mask(SIGSYS, &blocks)) return error;
  if (const int error = fault::strike("calls_on.handlers")) return error;
  return blocks || detail::a_handler_blocks(SIGSYS) ? EDEADLK : 0;
}

}  // namespace

int calls_install(CallHandler handler, void* context) {
  if (const int error = fault::strike("calls_install")) return error;
  Action before{};
  if (const int error = action_get(SIGSYS, &before)) return error;
  if (is_ours(before)) return EBUSY;  // there is one handler
  g_before = before;
  g_context.store(context, std::memory_order_relaxed);
  g_handler.store(handler, std::memory_order_release);
  if (const int error = fault::strike("calls_install.action")) return error;
  return action_set(SIGSYS, {on_sigsys, SA_SIGINFO | SA_NODEFER | detail::kRestorer, stretto_calls_return, 0});
}

void calls_uninstall() {
  Action action{};
  if (action_get(SIGSYS, &action) == 0 && is_ours(action)) (void)action_set(SIGSYS, g_before);
}

int calls_on() {
  if (const int error = check_action()) return error;
  if (const int error = check_blocked()) return error;
  if (const int error = fault::strike("calls_on")) return error;
  const long begin = number_of(reinterpret_cast<const void*>(stretto_calls_begin));
  const long bytes = number_of(stretto_calls_end) - begin;
  const long result = call(SYS_prctl, kDispatch, kDispatchOn, begin, bytes, number_of(&t_selector));
  if (result != 0) return static_cast<int>(-result);
  t_selector = kBlock;
  return 0;
}

void calls_off() {
  if (t_selector != kAllow) switch_off();
}

long call_through(long number, const long (&arguments)[6]) { return stretto_calls_begin(number, arguments); }

#else

int calls_install(CallHandler, void*) { return ENOTSUP; }
void calls_uninstall() {}
int calls_on() { return ENOTSUP; }
void calls_off() {}
long call_through(long, const long (&)[6]) { return -ENOSYS; }

#endif

}  // namespace stretto::sys
