// SPDX-License-Identifier: BSD-3-Clause
// Waiting for many streams at once, and what streams for long messages need beside (sys.hpp).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

constexpr std::uint64_t kWaking = ~std::uint64_t{0};

int control(const Poller& poller, int operation, int stream, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return epoll_ctl(poller.waiting, operation, stream, &event) == 0 ? 0 : errno;
}

std::uint32_t events_of(bool readable, bool writable) { return (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u); }

int set_option(int stream, int level, int option, int value) {
  return setsockopt(stream, level, option, &value, sizeof value) == 0 ? 0 : errno;
}

}  // namespace

int poller_open(Poller* poller) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_open")) return error;
  Poller made;
  made.waiting = epoll_create1(EPOLL_CLOEXEC);
  int error = made.waiting < 0 ? errno : 0;
  if (error == 0) error = fault::strike("poller_open.waking");
  if (error == 0) {
    made.waking = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = made.waking < 0 ? errno : control(made, EPOLL_CTL_ADD, made.waking, EPOLLIN, kWaking);
  }
  if (error != 0)
    poller_close(&made);
  else
    *poller = made;
  return error;
}

int poller_add(const Poller& poller, int stream, bool readable, bool writable, std::uint64_t tag) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_add")) return error;
  return control(poller, EPOLL_CTL_ADD, stream, events_of(readable, writable), tag);
}

int poller_change(const Poller& poller, int stream, bool readable, bool writable, std::uint64_t tag) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_change")) return error;
  return control(poller, EPOLL_CTL_MOD, stream, events_of(readable, writable), tag);
}

int poller_wait(const Poller& poller, PollerEvent (&events)[kMostEvents], int timeout_ms, int* count) {
  const ErrnoKept kept;
  if (const int error = fault::strike("poller_wait")) return error;
  epoll_event found[kMostEvents];
  const int ready = epoll_wait(poller.waiting, found, kMostEvents, timeout_ms);
  if (ready < 0 && errno != EINTR) return errno;
  *count = 0;
  for (int i = 0; i < ready; ++i) {
    if (found[i].data.u64 == kWaking) {
      std::uint64_t times = 0;
      (void)!read(poller.waking, &times, sizeof times);
      continue;
    }
    const bool broken = (found[i].events & (EPOLLERR | EPOLLHUP)) != 0;
    events[(*count)++] = {found[i].data.u64, broken || (found[i].events & EPOLLIN) != 0,
                          broken || (found[i].events & EPOLLOUT) != 0};
  }
  return 0;
}

void poller_wake(const Poller& poller) {
  const ErrnoKept kept;
  const std::uint64_t once = 1;
  (void)!retried([&] { return write(poller.waking, &once, sizeof once); });
}

void poller_close(Poller* poller) {
  const ErrnoKept kept;
  if (poller->waking >= 0) close(poller->waking);
  if (poller->waiting >= 0) close(poller->waiting);
  *poller = {};
}

int stream_receive_pieces(int stream, const Place* places, int count, std::size_t* received) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_receive_pieces")) return error;
  iovec parts[kMostPieces];
  msghdr message{};
  message.msg_iov = parts;
  for (int i = 0; i < count; ++i) parts[message.msg_iovlen++] = {places[i].data, places[i].bytes};
  const ssize_t result = retried([&] { return recvmsg(stream, &message, MSG_DONTWAIT); });
  if (result < 0) return errno;
  if (result == 0) return ECONNRESET;  // the caller always expects more, so this is the stream's end
  *received = static_cast<std::size_t>(result);
  return 0;
}

void stream_report_from(int stream, std::size_t bytes) {
  const ErrnoKept kept;
  (void)set_option(stream, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(std::max<std::size_t>(bytes, 1)));
}

void stream_keep_unsent(int stream, std::size_t bytes) {
  const ErrnoKept kept;
  (void)set_option(stream, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(bytes));
}

void stream_buffers(int stream, std::size_t bytes) {
  const ErrnoKept kept;
  (void)set_option(stream, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes));
  (void)set_option(stream, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
}

}  // namespace stretto::sys
