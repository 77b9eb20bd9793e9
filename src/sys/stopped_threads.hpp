// SPDX-License-Identifier: BSD-3-Clause
// The registers of a thread that is stopped for a moment, as debuggers stop it (ptrace). The thread
// goes on as if nothing had been: a system call that it was in is made again. (Linux names a few
// that return EINTR then, such as epoll_wait: signal(7).)
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

#if defined(__x86_64__)
inline constexpr unsigned kUnwoundRegisters = 17, kStackRegister = 7, kFrameRegister = 6, kReturnRegister = 16;
#elif defined(__aarch64__)
inline constexpr unsigned kUnwoundRegisters = 33, kStackRegister = 31, kFrameRegister = 29, kReturnRegister = 30;
#endif
// By DWARF's numbers.
struct ThreadRegisters {
  std::uint64_t pc = 0;
  std::uint64_t of[kUnwoundRegisters] = {};
};
// Runs while the thread is stopped. It must wait for nothing that the thread may hold.
using WhileStopped = void (*)(void* context, const ThreadRegisters& registers);

// Of a thread of another process. EPERM: the system forbids it (yama's ptrace_scope, seccomp,
// another user, or somebody traces it already).
int thread_stopped(int thread, WhileStopped visit, void* context);
// Of a thread of this process, but not of the calling thread. A process cannot trace itself. So a
// helper process does it, which has this process's memory and nothing else of it, and has ended
// when the function returns. The helper has a small stack.
int own_thread_stopped(int thread, WhileStopped visit, void* context);

int thread_id();  // of the calling thread

}  // namespace stretto::sys
