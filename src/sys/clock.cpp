// SPDX-License-Identifier: BSD-3-Clause
// Clocks, processor time and naps.
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "sys/detail.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {

namespace {
std::uint64_t read_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}
}  // namespace

std::uint64_t now_ns() { return read_ns(CLOCK_MONOTONIC); }
std::uint64_t thread_processor_ns() { return read_ns(CLOCK_THREAD_CPUTIME_ID); }
std::uint64_t real_ns() { return read_ns(CLOCK_REALTIME); }
std::uint64_t tick_ns() { return read_ns(CLOCK_MONOTONIC_COARSE); }

ThreadUse thread_use() {
  rusage use{};
  const detail::ErrnoKept kept;
  (void)getrusage(RUSAGE_THREAD, &use);
  const auto ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u + static_cast<std::uint64_t>(time.tv_usec) * 1000u;
  };
  return {ns(use.ru_utime) + ns(use.ru_stime), static_cast<std::uint64_t>(use.ru_nvcsw + use.ru_nivcsw),
          static_cast<std::uint64_t>(use.ru_nivcsw)};
}

void thread_yield() { sched_yield(); }

// A signal ends the nap, and it is not repeated: the caller looks again anyway.
void nap_ns(std::uint64_t nanoseconds) {
  const detail::ErrnoKept kept;
  const timespec length{static_cast<time_t>(nanoseconds / 1000000000u), static_cast<long>(nanoseconds % 1000000000u)};
  nanosleep(&length, nullptr);
}

}  // namespace stretto::sys
