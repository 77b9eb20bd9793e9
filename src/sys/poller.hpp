// SPDX-License-Identifier: BSD-3-Clause
// One thread waits for many descriptors and gives up its processor, until another thread wakes it.
//
// Contract: as sys/sys.hpp. One thread calls poller_wait; any thread may wake it. epoll watches
// what a descriptor leads to: remove it before it is closed, or a copy of it keeps it watched.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

struct Poller {
  int epoll = -1;
  int waker = -1;
};
int poller_open(Poller* poller);
void poller_close(Poller* poller);  // what was watched stays open

// What to wait for. An end or an error of a stream is always told: as both.
struct Interest {
  bool readable = false;
  bool writable = false;
};
// `tag` comes back with the descriptor. EEXIST: it is watched already. EPERM: a plain file is
// always ready, and cannot be watched. EINVAL: the tag is ~0.
int poller_add(const Poller& poller, int fd, Interest interest, std::uint64_t tag);
// ENOENT: it is not watched. Ask for `writable` only while there is something to send, and only on
// the stream whose turn it is: a stream with room wakes the thread without end.
int poller_modify(const Poller& poller, int fd, Interest interest, std::uint64_t tag);
int poller_remove(const Poller& poller, int fd);
// Modifies what is watched, and adds what is not.
inline int poller_set(const Poller& poller, int fd, Interest interest, std::uint64_t tag) {
  const int error = poller_modify(poller, fd, interest, tag);
  return error == ENOENT ? poller_add(poller, fd, interest, tag) : error;
}

// Ends the wait of the other thread, or its next one if it does not wait. May be called in a signal
// handler, and by many at once: they wake it once.
int poller_wake(const Poller& poller);

struct Ready {
  std::uint64_t tag;
  bool readable, writable;
};
inline constexpr int kMostReady = 32;
inline constexpr std::uint64_t kForever = ~std::uint64_t{0};
// Waits until something is ready, somebody wakes it, or the time is over: *count is 0 then and
// *woken false. What is not taken (more is ready than fits) comes next time.
int poller_wait(const Poller& poller, std::uint64_t timeout_ns, Ready (&ready)[kMostReady], int* count, bool* woken);

// ---- when a stream counts as ready ----
// Readable from so many bytes on (SO_RCVLOWAT), of `left` that are still to come in this message. A
// mark above what is left hangs the wait, so the lesser of the two is the mark. It holds until the
// next call: call again when fewer are left. The kernel keeps it below half of the receive buffer.
// stream_acknowledge sets the same mark: use one of the two.
int stream_readable_from(int stream, std::size_t bytes, std::size_t left);
// The kernel keeps at most some twice so many bytes that the peer has not acknowledged (SO_SNDBUF,
// which counts its own structures, too), and tells that the stream is writable when a third has
// room. What is not in the kernel yet can still be chosen by priority. TCP_NOTSENT_LOWAT is not
// enough: what a network card has queued counts as sent.
int stream_keeps(int stream, std::size_t bytes);
// What is sent goes before all that other streams of this host have in the card's queue, or behind,
// if that queue knows priorities (SO_PRIORITY; pfifo_fast does). It needs no privilege.
enum class Urgency : std::uint8_t { high, low };
int stream_urgency(int stream, Urgency urgency);

}  // namespace stretto::sys
