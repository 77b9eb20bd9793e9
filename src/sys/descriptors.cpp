// SPDX-License-Identifier: BSD-3-Clause
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

// Room for the kernel's word on the sender and for one descriptor. Padding makes room for a second one; what does not
// fit the kernel closes and says MSG_CTRUNC.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))];
};

// Abstract names vanish with their socket: nothing is left behind, and no directory is needed.
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

// What came with a letter beside its text.
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
      // The kernel fills in the sender's real user, as our user namespace sees it; a user without a name here shows as
      // the overflow user, which is not us unless we are the overflow user too.
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

// One letter: 0, EAGAIN (none left), EBADMSG (dropped, look at the next one) or another error.
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
  // A good letter whose descriptor found no free number: not the sender's fault, and the caller must know.
  return ours && cut && enclosed.count == 0 ? EMFILE : EBADMSG;
}

}  // namespace

int peer_descriptor_open(int pid, int descriptor, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("peer_descriptor_open")) return error;
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
  // O_NONBLOCK: should the number have become a pipe meanwhile, do not wait for its other end.
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
  // Too many of this user's descriptors are under way: the same cure as for a full queue.
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
