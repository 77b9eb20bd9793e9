// SPDX-License-Identifier: BSD-3-Clause
// Numbers of system calls, and what their arguments point to, for those who answer caught calls.
#pragma once
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "sys/call_numbers.hpp"
#include "sys/calls.hpp"

// Newer than some headers that Stretto is built with.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

namespace stretto::sys {

// Copies memory of this process, by a call that is not caught. EFAULT: it is not there, or guarded
// in user mode. EPERM, ENOSYS: a filter refuses.
inline int copy_through(std::uint64_t from, void* to, std::size_t bytes) {
  const auto number = [](const void* at) { return static_cast<long>(reinterpret_cast<std::uintptr_t>(at)); };
  const iovec local{to, bytes}, remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(from)), bytes};
  const long own = call_through(SYS_getpid, {});
  const long got = call_through(SYS_process_vm_readv, {own, number(&local), 1, number(&remote), 1, 0});
  if (got < 0) return static_cast<int>(-got);
  return static_cast<std::size_t>(got) == bytes ? 0 : EFAULT;
}

// The beginning of a file of /proc, terminated. Empty: it cannot be read.
inline void read_through(const char* path, char* text, std::size_t capacity) {
  const auto number = [](const void* at) { return static_cast<long>(reinterpret_cast<std::uintptr_t>(at)); };
  const long file = call_through(SYS_openat, {AT_FDCWD, number(path), O_RDONLY | O_CLOEXEC});
  long got = 0;
  if (file >= 0) {
    got = call_through(SYS_read, {file, number(text), static_cast<long>(capacity - 1)});
    (void)call_through(SYS_close, {file});
  }
  text[got > 0 ? got : 0] = 0;
}

inline void yield_through() { (void)call_through(SYS_sched_yield, {}); }
inline void nap_through(long ns) {
  const timespec time{0, ns};
  (void)call_through(SYS_nanosleep, {static_cast<long>(reinterpret_cast<std::uintptr_t>(&time)), 0});
}
// As now_ns(). Where the clock needs the kernel, the call is not caught.
inline std::uint64_t now_through() {
  timespec now{};
  (void)call_through(SYS_clock_gettime, {CLOCK_MONOTONIC, static_cast<long>(reinterpret_cast<std::uintptr_t>(&now))});
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace stretto::sys
