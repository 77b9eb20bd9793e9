// SPDX-License-Identifier: BSD-3-Clause
// System calls on guarded memory, in user mode: they wait for the data that they touch.
//
// The kernel does not wait for a page that is guarded in user mode: the call fails with EFAULT. So
// the calls of a thread with pending data are caught (sys/calls.hpp). The table of call_table.cpp
// says what each call of Linux touches:
//
//   simple      memory that its arguments name. The handler waits for it, runs the call and gives
//               its result. Data that it does not touch stays pending.
//   mapping     the same where the guard hears of no events. Else it waits for nothing.
//   nothing     no memory of the program
//   everything  it makes threads or processes, or what it touches is not known. Numbers that are
//               not in the table are of this kind, and so are calls that block our own signals.
//               The handler waits for all data. Then nothing is guarded, and the call runs again
//               with catching off.
//
// Arrays of iovec and message headers are read by a system call that fails where a load would end
// the process. Where that is forbidden (seccomp), the call counts as unknown. What another thread
// changes in them meanwhile is its own mistake, as ever.
#pragma once
#include <cstdint>

#include "sys/calls.hpp"

namespace stretto::overlap {

// Within a signal handler, on the thread that makes the call. Both make system calls by
// sys::call_through alone, and neither allocates. Nor may the thread allocate that fills the pages:
// fork() holds the locks of malloc when its call is caught.
struct CallWaits {
  void* context = nullptr;
  // Returns when no byte of this memory is away. Most of it never was.
  void (*wait_for)(void* context, std::uint64_t address, std::uint64_t bytes) = nullptr;
  // Returns when nothing is guarded.
  void (*complete_all)(void* context) = nullptr;
  // The guard has events of memory. Without them, calls that change mappings wait, too.
  bool hears_mappings = true;
  // Other threads could run a handler that the program installs now. Its calls would not be caught.
  bool beside_threads = false;
};

// A sys::CallHandler. `waits` is a CallWaits.
sys::CallAnswer answer_call(void* waits, const sys::CaughtCall& call);

}  // namespace stretto::overlap
