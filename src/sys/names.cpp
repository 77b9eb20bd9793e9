// SPDX-License-Identifier: BSD-3-Clause
// Names that a process takes for as long as it lives: abstract sockets.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;

struct Address {
  sockaddr_un name = {};
  socklen_t bytes = 0;

  explicit Address(std::uint64_t id) {
    name.sun_family = AF_UNIX;
    const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "stretto-name-%016llx",
                                     static_cast<unsigned long long>(id));
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

}  // namespace

int name_open(Name* name) {
  const ErrnoKept kept;
  if (const int error = fault::strike("name_open")) return error;
  const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return errno;
  name->socket = made;
  return 0;
}

int name_take(const Name& name, std::uint64_t id) {
  const ErrnoKept kept;
  if (const int error = fault::strike("name_take")) return error;
  const Address address(id);
  return bind(name.socket, address.get(), address.bytes) == 0 ? 0 : errno;
}

// EPERM: a socket that is connected to another one has the name.
bool name_taken(const Name& asking, std::uint64_t id) {
  const ErrnoKept kept;
  if (fault::strike("name_taken") != 0) return false;
  const Address address(id);
  return connect(asking.socket, address.get(), address.bytes) == 0 || errno == EPERM;
}

void name_close(Name* name) {
  const ErrnoKept kept;
  if (name->socket >= 0) close(name->socket);
  name->socket = -1;
}

}  // namespace stretto::sys
