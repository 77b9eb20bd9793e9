// SPDX-License-Identifier: BSD-3-Clause
// Passing descriptors to processes on the same node, by letters and by /proc.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

struct Letter {
  std::uint64_t magic;
  std::uint64_t from;
};
constexpr std::uint64_t kMagic = 0x5354524554544f31u;  // "STRETTO1"

// Holds the kernel's statement about the sender, and one descriptor. Padding leaves room for a
// second one. The kernel closes descriptors that do not fit, and sets MSG_CTRUNC.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))];
};

// Abstract names vanish with their socket. They leave nothing behind and need no directory.
socklen_t name_of(std::uint64_t id, sockaddr_un* name) {
  *name = {};
  name->sun_family = AF_UNIX;
  const int length = std::snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "stretto-%016llx",
                                   static_cast<unsigned long long>(id));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
}

int bind_mailbox(int fd, std::uint64_t id) {
  if (const int error = fault::strike("mailbox_open.bind")) return error;
  const int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) return errno;
  sockaddr_un name;
  const socklen_t length = name_of(id, &name);
  return bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 0 : errno;
}

// What came with a letter apart from its text.
struct Enclosed {
  bool own_user = false;
  int fds[2] = {-1, -1};
  int count = 0;
};

Enclosed open_control(msghdr& message) {
  Enclosed enclosed;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender;
      std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
      // The kernel fills in the sender's real user, as this user namespace sees it. A user who has
      // no name here appears as the overflow user. That differs from this process's user, unless
      // this process runs as the overflow user too.
      enclosed.own_user = sender.uid == getuid();
    } else if (part->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
        if (enclosed.count < 2) {
          enclosed.fds[enclosed.count++] = fd;
        } else {
          close(fd);
        }
      }
    }
  }
  return enclosed;
}

// Receives one letter. Returns 0, EAGAIN (none is left), EBADMSG (it dropped a letter; look at the
// next one) or another error.
int receive_one(int socket, std::uint64_t* from, int* fd) {
  Letter letter{};
  iovec text{&letter, sizeof letter};
  Control control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = retried([&] { return recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
  if (got < 0) return errno;
  const Enclosed enclosed = open_control(message);
  const bool ours =
      enclosed.own_user && got == sizeof letter && !(message.msg_flags & MSG_TRUNC) && letter.magic == kMagic;
  const bool cut = message.msg_flags & MSG_CTRUNC;
  if (ours && !cut && enclosed.count == 1) {
    *from = letter.from;
    *fd = enclosed.fds[0];
    return 0;
  }
  for (int i = 0; i < enclosed.count; ++i) close(enclosed.fds[i]);
  // The letter is valid, but its descriptor found no free number. The sender is not at fault, and
  // the caller must know.
  return ours && cut && enclosed.count == 0 ? EMFILE : EBADMSG;
}

}  // namespace

int peer_descriptor_open(int pid, int descriptor, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("peer_descriptor_open")) return error;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
  // O_NONBLOCK: if the number has become a pipe meanwhile, this does not wait for the pipe's other
  // end.
  const int opened = retried([&] { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (opened < 0) return errno;
  *fd = opened;
  return 0;
}

int mailbox_open(std::uint64_t id, Mailbox* box) {
  const ErrnoKept kept;
  if (const int error = fault::strike("mailbox_open")) return error;
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return errno;
  if (const int error = bind_mailbox(made, id)) {
    close(made);
    return error;
  }
  box->socket = made;
  return 0;
}

int mailbox_send(const Mailbox& box, std::uint64_t to, std::uint64_t from, int descriptor) {
  const ErrnoKept kept;
  if (const int error = fault::strike("mailbox_send")) return error;
  Letter letter{kMagic, from};
  iovec text{&letter, sizeof letter};
  union {
    cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control{};
  sockaddr_un name;
  msghdr message{};
  message.msg_name = &name;
  message.msg_namelen = name_of(to, &name);
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  if (retried([&] { return sendmsg(box.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); }) >= 0) return 0;
  // Too many of this user's descriptors are in flight. The remedy is the same as for a full queue.
  return errno == ETOOMANYREFS ? EAGAIN : errno;
}

int mailbox_receive(const Mailbox& box, std::uint64_t* from, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("mailbox_receive")) return error;
  int error = EBADMSG;
  while (error == EBADMSG) error = receive_one(box.socket, from, fd);
  return error;
}

void mailbox_close(Mailbox* box) {
  close_descriptor(box->socket);
  box->socket = -1;
}

}  // namespace stretto::sys
