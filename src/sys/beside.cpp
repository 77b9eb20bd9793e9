// SPDX-License-Identifier: BSD-3-Clause
// A function in a child process that shares this process's memory.
#include <sched.h>
#include <sys/wait.h>

#include "sys/detail.hpp"
#include "sys/sys.hpp"

namespace stretto::sys::detail {

// CLONE_VFORK holds the calling thread up, so the child may use its thread-local memory.
int run_beside(int (*function)(void* data), void* data, std::size_t stack_bytes, int more) {
  void* stack = nullptr;
  if (const int error = map_private(stack_bytes, &stack)) return error;
  const int child = clone(function, static_cast<char*>(stack) + stack_bytes, CLONE_VM | CLONE_VFORK | more, data);
  const int error = child < 0 ? errno : 0;
  if (child > 0) (void)retried([&] { return waitpid(child, nullptr, __WALL); });
  unmap(stack, stack_bytes);
  return error;
}

}  // namespace stretto::sys::detail
