// SPDX-License-Identifier: BSD-3-Clause
// Who a process is, on which host, and whether it still lives.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/hash.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {

using detail::ErrnoKept;
using detail::retried;

namespace detail {

int read_small_file(const char* path, char* text, std::size_t capacity, std::size_t* bytes) {
  const int fd = retried([&] { return open(path, O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return errno;
  std::size_t length = 0;
  int error = 0;
  while (length + 1 < capacity) {
    const ssize_t got = retried([&] { return read(fd, text + length, capacity - 1 - length); });
    if (got < 0) error = errno;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  close(fd);
  if (error != 0) return error;
  text[length] = 0;
  *bytes = length;
  return 0;
}

}  // namespace detail

int process_id() { return getpid(); }

namespace {

// /proc/<pid>/stat from its third field on. Field 2 is the program's name in parentheses and may
// contain any characters, also ')' and blanks. Reading therefore starts at the last ')'.
struct Stat {
  int error = 0;
  char state = 0;             // field 3
  std::uint64_t threads = 0;  // field 20
  std::uint64_t started = 0;  // field 22
};

Stat read_stat(int pid) {
  char path[32];
  char text[1024];
  std::size_t bytes = 0;
  Stat stat;
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  stat.error = detail::read_small_file(path, text, sizeof text, &bytes);
  const char* at = stat.error == 0 ? std::strrchr(text, ')') : nullptr;
  for (int field = 2; at && field < 22; ++field) {  // `at` is the blank before this field
    if (field == 3) stat.state = at[1];
    if (field == 20) stat.threads = std::strtoull(at + 1, nullptr, 10);
    at = std::strchr(at + 1, ' ');
  }
  if (at) stat.started = std::strtoull(at + 1, nullptr, 10);
  return stat;
}

// In the states Z and X a process has ended. But a process whose first thread ends before the
// others is in state Z, too. Without a file of its own the process may be hidden (hidepid), or all
// processes may be (chroot). Then a signal can be sent to a living process, or sending is
// forbidden.
bool has_ended(int pid, const Stat& stat) {
  if (stat.error != 0) return (stat.error == ENOENT || stat.error == ESRCH) && kill(pid, 0) != 0 && errno == ESRCH;
  return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

}  // namespace

std::uint64_t start_time(int pid) {
  const ErrnoKept kept;
  if (fault::strike("start_time")) return 0;
  return read_stat(pid).started;
}

bool process_gone(int pid, std::uint64_t started) {
  const ErrnoKept kept;
  if (pid <= 0) return true;  // kill() would take it for a group
  const Stat stat = read_stat(pid);
  // Identities keep the low half. After 497 days of uptime a machine has counted more ticks than
  // fit into it.
  const auto low_half = [](std::uint64_t ticks) { return static_cast<std::uint32_t>(ticks); };
  return has_ended(pid, stat) || (started != 0 && stat.started != 0 && low_half(stat.started) != low_half(started));
}

std::uint64_t host_id() {
  const ErrnoKept kept;
  if (fault::strike("host_id")) return 0;
  char text[64];
  std::size_t bytes = 0;
  if (detail::read_small_file("/proc/sys/kernel/random/boot_id", text, sizeof text, &bytes) != 0 || bytes == 0)
    return 0;
  return hash(text, bytes);
}

void host_name(char* name, std::size_t capacity) {
  const ErrnoKept kept;
  name[0] = 0;
  if (fault::strike("host_name") || gethostname(name, capacity) != 0) name[0] = 0;
  name[capacity - 1] = 0;
}

void command_line(char* text, std::size_t capacity) {
  const ErrnoKept kept;
  std::size_t bytes = 0;
  text[0] = 0;
  if (fault::strike("command_line") != 0) return;
  if (detail::read_small_file("/proc/self/cmdline", text, capacity, &bytes) != 0) text[0] = 0;
  while (bytes > 0 && text[bytes - 1] == 0) --bytes;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (text[i] == 0) text[i] = ' ';
  }
}

void program_path(char* path, std::size_t capacity) {
  const ErrnoKept kept;
  const ssize_t length = fault::strike("program_path") != 0 ? -1 : readlink("/proc/self/exe", path, capacity - 1);
  path[length > 0 ? length : 0] = 0;
}

int real_path(const char* name, char* path, std::size_t capacity) {
  const ErrnoKept kept;
  if (const int error = fault::strike("real_path")) return error;
  char whole[PATH_MAX];
  if (realpath(name, whole) == nullptr) return errno;
  const std::size_t length = std::strlen(whole);
  if (length >= capacity) return ENAMETOOLONG;
  std::memcpy(path, whole, length + 1);
  return 0;
}

// O_NONBLOCK: a pipe without a writer must not block the program.
int file_read(const char* path, char* text, std::size_t capacity, std::size_t* bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("file_read")) return error;
  const int fd = retried([&] { return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) return errno;
  std::size_t length = 0;
  int error = 0;
  for (;;) {
    char beyond;
    const bool full = length == capacity;
    const ssize_t got =
        retried([&] { return full ? read(fd, &beyond, 1) : read(fd, text + length, capacity - length); });
    if (got < 0) error = errno;
    if (got > 0 && full) error = EFBIG;
    if (got <= 0 || full) break;
    length += static_cast<std::size_t>(got);
  }
  close(fd);
  if (error == 0) *bytes = length;
  return error;
}

int file_replace(const char* path, const char* text, std::size_t bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("file_replace")) return error;
  char other[PATH_MAX];
  const char* const name = std::strrchr(path, '/');
  const int length = name == nullptr ? 0 : static_cast<int>(name - path);
  if (length == 0 || std::snprintf(other, sizeof other, "%.*s", length, path) >= PATH_MAX) return EINVAL;
  (void)mkdir(other, 0700);
  if (std::snprintf(other, sizeof other, "%s.%d", path, getpid()) >= PATH_MAX) return ENAMETOOLONG;
  const int fd = retried([&] { return open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); });
  if (fd < 0) return errno;
  const ssize_t written = retried([&] { return write(fd, text, bytes); });
  int error = written < 0 ? errno : static_cast<std::size_t>(written) < bytes ? ENOSPC : 0;
  if (close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && rename(other, path) != 0) error = errno;
  if (error != 0) (void)unlink(other);
  return error;
}

bool directory_searchable(const char* path) {
  const ErrnoKept kept;
  return access(path, X_OK) == 0;
}

std::uint64_t pid_namespace() {
  const ErrnoKept kept;
  if (fault::strike("pid_namespace")) return 0;
  struct stat status{};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::uint64_t user_id() { return geteuid(); }

int random_bytes(void* target, std::size_t bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("random_bytes")) return error;
  auto* at = static_cast<char*>(target);
  while (bytes != 0) {
    const ssize_t got = retried([&] { return getrandom(at, bytes, 0); });
    if (got < 0) return errno;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return 0;
}

}  // namespace stretto::sys
