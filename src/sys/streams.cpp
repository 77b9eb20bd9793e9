// SPDX-License-Identifier: BSD-3-Clause
// TCP connections.
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

// Pieces of at most this many bytes in total are sent as one. The system takes longer to look at
// several pieces than a copy takes.
constexpr std::size_t kShortBytes = 1 << 10;

int open_stream(int* stream) {
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return errno;
  *stream = made;
  return 0;
}

sockaddr_in name_of(std::uint32_t ip, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = ip;
  name.sin_port = port;
  return name;
}

bool set_option(int stream, int level, int option, int value) {
  return setsockopt(stream, level, option, &value, sizeof value) == 0;
}

// Short messages go at once, even while earlier ones are unacknowledged. The system acknowledges
// them along with others, and not each at once.
int suit_short_messages(int stream) {
  const bool set = set_option(stream, IPPROTO_TCP, TCP_NODELAY, 1) && set_option(stream, IPPROTO_TCP, TCP_QUICKACK, 0);
  return set ? 0 : errno;
}

int listen_at(const HostAddress& at, int stream, std::uint16_t* port) {
  if (const int error = fault::strike("stream_listen.bind")) return error;
  sockaddr_in name = name_of(at.ip, 0);
  socklen_t length = sizeof name;
  if (bind(stream, reinterpret_cast<const sockaddr*>(&name), length) != 0 || listen(stream, SOMAXCONN) != 0)
    return errno;
  if (getsockname(stream, reinterpret_cast<sockaddr*>(&name), &length) != 0) return errno;
  *port = name.sin_port;
  return 0;
}

// False if others cannot reach this host by this address.
bool read_address(int stream, ifreq entry, HostAddress* address) {
  const auto ip_in = [&] { return reinterpret_cast<const sockaddr_in*>(&entry.ifr_addr)->sin_addr.s_addr; };
  if (entry.ifr_addr.sa_family != AF_INET) return false;
  address->ip = ip_in();
  if (ioctl(stream, SIOCGIFNETMASK, &entry) != 0) return false;
  address->mask = ip_in();
  if (ioctl(stream, SIOCGIFFLAGS, &entry) != 0) return false;
  const bool usable =
      (entry.ifr_flags & IFF_UP) != 0 && (entry.ifr_flags & IFF_RUNNING) != 0 && (entry.ifr_flags & IFF_LOOPBACK) == 0;
  if (char* const alias = std::strchr(entry.ifr_name, ':')) *alias = 0;
  return usable && !is_internal_bridge("", entry.ifr_name);
}

}  // namespace

int host_addresses(HostAddress (&addresses)[kMostAddresses]) {
  const ErrnoKept kept;
  int stream = -1, found = 0;
  if (fault::strike("host_addresses") != 0 || open_stream(&stream) != 0) return 0;
  constexpr int kMostInterfaces = 64;
  ifreq entries[kMostInterfaces];
  ifconf list{};
  list.ifc_len = sizeof entries;
  list.ifc_req = entries;
  if (ioctl(stream, SIOCGIFCONF, &list) == 0) {
    const int count = list.ifc_len / static_cast<int>(sizeof(ifreq));
    for (int i = 0; i < count && found < kMostAddresses; ++i)
      found += read_address(stream, entries[i], &addresses[found]) ? 1 : 0;
  }
  close(stream);
  return found;
}

int stream_listen(const HostAddress& at, int* listener, std::uint16_t* port) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_listen")) return error;
  int made = -1;
  if (const int error = open_stream(&made)) return error;
  if (const int error = listen_at(at, made, port)) {
    close(made);
    return error;
  }
  *listener = made;
  return 0;
}

int stream_accept(int listener, int* stream) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_accept")) return error;
  const int made = retried([&] { return accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  if (made < 0) return errno == ECONNABORTED ? EAGAIN : errno;
  if (const int error = suit_short_messages(made)) {
    close(made);
    return error;
  }
  *stream = made;
  return 0;
}

int stream_connect(const HostAddress& to, std::uint16_t port, int* stream) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_connect")) return error;
  int made = -1;
  if (const int error = open_stream(&made)) return error;
  const sockaddr_in name = name_of(to.ip, port);
  if (connect(made, reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    const int error = errno;
    close(made);
    return error;
  }
  *stream = made;
  return 0;
}

int stream_connected(int stream) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_connected")) return error;
  pollfd ready{stream, POLLOUT, 0};
  const int count = retried([&] { return poll(&ready, 1, 0); });
  if (count <= 0) return count == 0 ? EAGAIN : errno;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(stream, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  // not earlier: connecting changes how the stream acknowledges
  return error != 0 ? error : suit_short_messages(stream);
}

int stream_send(int stream, const Piece* pieces, int count, std::size_t skipped, std::size_t* sent) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_send")) return error;
  iovec parts[kMostPieces];
  msghdr message{};
  message.msg_iov = parts;
  char whole[kShortBytes];
  std::size_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t gone = std::min(skipped, pieces[i].bytes), left = pieces[i].bytes - gone;
    skipped -= gone;
    if (left == 0) continue;
    const char* const from = static_cast<const char*>(pieces[i].data) + gone;
    if (bytes + left <= sizeof whole) std::memcpy(whole + bytes, from, left);
    parts[message.msg_iovlen++] = {const_cast<char*>(from), left};
    bytes += left;
  }
  constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
  const ssize_t result = retried(
      [&] { return bytes <= sizeof whole ? send(stream, whole, bytes, kFlags) : sendmsg(stream, &message, kFlags); });
  if (result < 0) return errno;
  *sent = static_cast<std::size_t>(result);
  return 0;
}

// On Linux the low-water mark decides about data of more than a segment. While less than the mark
// is unread, the system acknowledges such data as they arrive (tcp_input.c, __tcp_ack_snd_check).
// Otherwise it does so from within the call that reads them (tcp.c, __tcp_cleanup_rbuf). Reads that
// do not wait ignore the mark.
void stream_acknowledge(int stream, bool on_arrival) {
  const ErrnoKept kept;
  (void)set_option(stream, SOL_SOCKET, SO_RCVLOWAT, on_arrival ? kStreamMessageBytes : 1);
}

void stream_end(int stream) {
  const ErrnoKept kept;
  (void)shutdown(stream, SHUT_WR);
}

int stream_waiting(int stream, std::size_t* bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_waiting")) return error;
  int count = 0;
  if (ioctl(stream, FIONREAD, &count) != 0) return errno;
  *bytes = static_cast<std::size_t>(count);
  return 0;
}

int stream_receive(int stream, void* target, std::size_t capacity, std::size_t* received) {
  const ErrnoKept kept;
  if (const int error = fault::strike("stream_receive")) return error;
  const ssize_t count = retried([&] { return recv(stream, target, capacity, MSG_DONTWAIT); });
  if (count < 0) return errno;
  if (count == 0) return ECONNRESET;  // the caller always expects more, so this is the stream's end
  *received = static_cast<std::size_t>(count);
  return 0;
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

void stream_buffers(int stream, std::size_t bytes) {
  const ErrnoKept kept;
  (void)set_option(stream, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes));
  (void)set_option(stream, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
}

}  // namespace stretto::sys
