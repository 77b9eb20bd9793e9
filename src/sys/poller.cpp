// SPDX-License-Identifier: BSD-3-Clause
#include "sys/poller.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <ctime>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

// Newer than some kernel headers that Stretto is built with.
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441  // Linux 5.11, the same on all machines
#endif

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

constexpr std::uint64_t kWakerTag = ~std::uint64_t{0};
constexpr std::uint64_t kSecondNs = 1'000'000'000, kMillisecondNs = 1'000'000;

int control(const Poller& poller, int operation, int fd, Interest interest, std::uint64_t tag) {
  epoll_event event{};
  event.events = (interest.readable ? EPOLLIN | EPOLLRDHUP : 0u) | (interest.writable ? EPOLLOUT : 0u);
  event.data.u64 = tag;
  return epoll_ctl(poller.epoll, operation, fd, &event) == 0 ? 0 : errno;
}

// 0: only the clock of milliseconds is there, rounded up so that nobody spins through the last one.
constinit std::atomic<bool> g_has_nanoseconds{true};

int wait_once(int epoll, std::uint64_t timeout_ns, epoll_event* events, int most) {
  if (g_has_nanoseconds.load(std::memory_order_relaxed)) {
    const timespec time{static_cast<time_t>(timeout_ns / kSecondNs), static_cast<long>(timeout_ns % kSecondNs)};
    const timespec* const limit = timeout_ns == kForever ? nullptr : &time;
    const long found = syscall(SYS_epoll_pwait2, epoll, events, most, limit, nullptr, 0);
    if (found >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(found);
    g_has_nanoseconds.store(false, std::memory_order_relaxed);  // old, or a filter that is older than the call
  }
  const std::uint64_t milliseconds = timeout_ns / kMillisecondNs + (timeout_ns % kMillisecondNs != 0 ? 1 : 0);
  return epoll_wait(epoll, events, most,
                    timeout_ns == kForever ? -1 : static_cast<int>(std::min<std::uint64_t>(milliseconds, INT_MAX)));
}

int wait_until(int epoll, std::uint64_t timeout_ns, epoll_event* events, int most) {
  const std::uint64_t begin = timeout_ns == kForever || timeout_ns == 0 ? 0 : now_ns();
  std::uint64_t left = timeout_ns;
  int found = wait_once(epoll, left, events, most);
  while (found < 0 && errno == EINTR) {
    if (begin != 0) left = timeout_ns - std::min(timeout_ns, now_ns() - begin);
    found = wait_once(epoll, left, events, most);
  }
  return found;
}

int set_option(int stream, int level, int option, std::size_t bytes) {
  const int value = static_cast<int>(std::min<std::size_t>(bytes, INT_MAX));
  return setsockopt(stream, level, option, &value, sizeof value) == 0 ? 0 : errno;
}

int open_waker(const Poller& made, int* waker) {
  if (const int error = fault::strike("poller_open.waker")) return error;
  *waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (*waker < 0) return errno;
  if (const int error = fault::strike("poller_open.add")) return error;
  return control(made, EPOLL_CTL_ADD, *waker, {true, false}, kWakerTag);
}

}  // namespace

int poller_open(Poller* poller) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_open")) return error;
  Poller made;
  made.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (made.epoll < 0) return errno;
  if (const int error = open_waker(made, &made.waker)) {
    poller_close(&made);
    return error;
  }
  *poller = made;
  return 0;
}

void poller_close(Poller* poller) {
  close_descriptor(poller->epoll);
  close_descriptor(poller->waker);
  *poller = {};
}

int poller_add(const Poller& poller, int fd, Interest interest, std::uint64_t tag) {
  const ErrnoKept kept;
  if (tag == kWakerTag) return EINVAL;
  if (const int error = fault::strike("poller_add")) return error;
  return control(poller, EPOLL_CTL_ADD, fd, interest, tag);
}

int poller_modify(const Poller& poller, int fd, Interest interest, std::uint64_t tag) {
  const ErrnoKept kept;
  if (tag == kWakerTag) return EINVAL;
  if (const int error = fault::strike("poller_modify")) return error;
  return control(poller, EPOLL_CTL_MOD, fd, interest, tag);
}

int poller_remove(const Poller& poller, int fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_remove")) return error;
  return control(poller, EPOLL_CTL_DEL, fd, {}, 0);
}

// EAGAIN: the count is at its end, so the thread is woken already.
int poller_wake(const Poller& poller) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_wake")) return error;
  constexpr std::uint64_t kOne = 1;
  const ssize_t written = retried([&] { return write(poller.waker, &kOne, sizeof kOne); });
  return written == sizeof kOne || errno == EAGAIN ? 0 : errno;
}

int poller_wait(const Poller& poller, std::uint64_t timeout_ns, Ready (&ready)[kMostReady], int* count, bool* woken) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_wait")) return error;
  epoll_event events[kMostReady];
  const int found = wait_until(poller.epoll, timeout_ns, events, kMostReady);
  if (found < 0) return errno;
  *count = 0;
  *woken = false;
  for (int i = 0; i < found; ++i) {
    if (events[i].data.u64 == kWakerTag) {
      std::uint64_t times = 0;
      *woken = true;
      (void)retried([&] { return read(poller.waker, &times, sizeof times); });
    } else {
      const bool ended = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
      const bool readable = (events[i].events & (EPOLLIN | EPOLLRDHUP)) != 0;
      ready[(*count)++] = {events[i].data.u64, ended || readable, ended || (events[i].events & EPOLLOUT) != 0};
    }
  }
  return 0;
}

int stream_readable_from(int stream, std::size_t bytes, std::size_t left) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_readable_from")) return error;
  return set_option(stream, SOL_SOCKET, SO_RCVLOWAT, std::max<std::size_t>(std::min(bytes, left), 1));
}

int stream_keeps(int stream, std::size_t bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_keeps")) return error;
  return set_option(stream, SOL_SOCKET, SO_SNDBUF, bytes);
}

int stream_urgency(int stream, Urgency urgency) {
  constexpr std::size_t kBulk = 2, kInteractive = 6;  // TC_PRIO_BULK, TC_PRIO_INTERACTIVE
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_urgency")) return error;
  return set_option(stream, SOL_SOCKET, SO_PRIORITY, urgency == Urgency::high ? kInteractive : kBulk);
}

}  // namespace stretto::sys
