// SPDX-License-Identifier: BSD-3-Clause
// Only files of sys use this header: signal handlers of ours, whose system calls are never caught.
#pragma once
#if defined(__x86_64__) && defined(__LP64__)
#include <sys/syscall.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

extern "C" {
long stretto_calls_begin(long number, const long* arguments);
void stretto_calls_return();
}

namespace stretto::sys::detail {

constexpr unsigned long kRestorer = 0x04000000;  // SA_RESTORER
constexpr std::size_t kMaskBytes = 8;
constexpr int kSignals = 64;

// The kernel's sigaction: libc's would put its own return from the handler there.
struct Action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  const long arguments[6] = {a, b, c, d, e, 0};
  return stretto_calls_begin(number, arguments);
}
inline long number_of(const volatile void* address) {
  return static_cast<long>(reinterpret_cast<std::uintptr_t>(address));
}

inline int action_get(int signal, Action* action) {
  return static_cast<int>(-call(SYS_rt_sigaction, signal, 0, number_of(action), kMaskBytes));
}
inline int action_set(int signal, const Action& action) {
  return static_cast<int>(-call(SYS_rt_sigaction, signal, number_of(&action), 0, kMaskBytes));
}

inline bool is_default(const Action& action) { return action.handler == nullptr; }
inline bool is_ignored(const Action& action) { return reinterpret_cast<std::uintptr_t>(action.handler) == 1; }
inline bool is_handler(const Action& action) { return !is_default(action) && !is_ignored(action); }

inline std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }
inline bool has(std::uint64_t mask, int signal) { return (mask & bit_of(signal)) != 0; }

// Whether this thread blocks the signal.
inline int check_mask(int signal, bool* blocks) {
  std::uint64_t mask = 0;
  const long result = call(SYS_rt_sigprocmask, SIG_BLOCK, 0, number_of(&mask), kMaskBytes);
  *blocks = has(mask, signal);
  return static_cast<int>(-result);
}
// Whether a handler blocks the signal while it runs. Blocking all signals is usual.
inline bool a_handler_blocks(int signal) {
  for (int i = 1; i <= kSignals; ++i) {
    Action action{};
    if (i != signal && action_get(i, &action) == 0 && is_handler(action) && has(action.mask, signal)) return true;
  }
  return false;
}

}  // namespace stretto::sys::detail
#endif
