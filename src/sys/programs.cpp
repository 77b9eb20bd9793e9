// SPDX-License-Identifier: BSD-3-Clause
// Programs that Stretto starts, and files that outlive a job.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

struct Start {
  const char* path;
  char* const* words;
  char* const* environment;
  int ready;  // what is its standard input
  int error;
};

// In the child, which has the parent's memory and all signals blocked, until it is another program.
int become(void* data) {
  Start& start = *static_cast<Start*>(data);
  setsid();
  if (dup2(start.ready, 0) == 0) execve(start.path, start.words, start.environment);
  start.error = errno;
  _exit(127);
}

constexpr std::size_t kStackBytes = 64 << 10;

// In the child. Its own child becomes the program, which nobody here has to wait for.
int detach(void* data) {
  alignas(16) char stack[kStackBytes];
  if (clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK, data) < 0) static_cast<Start*>(data)->error = errno;
  _exit(0);
}

// Until the other end is closed.
void await_end(int pipe, int milliseconds) {
  pollfd end = {pipe, POLLIN, 0};
  const std::uint64_t until_ns = now_ns() + static_cast<std::uint64_t>(milliseconds) * 1'000'000;
  while (poll(&end, 1, milliseconds) < 0 && errno == EINTR && now_ns() < until_ns) {
  }
}

int write_all(int fd, const char* text, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t written = retried([&] { return write(fd, text, bytes); });
    if (written < 0) return errno;
    text += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

int write_file(const char* path, const char* text, std::size_t bytes) {
  const int fd = retried([&] { return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
  if (fd < 0) return errno;
  const int error = write_all(fd, text, bytes);
  return close(fd) != 0 && error == 0 ? errno : error;
}

}  // namespace

// When this function returns, the process has no more children than before.
int program_start(const char* path, char* const* words, char* const* environment, int ready_ms) {
  const ErrnoKept kept;
  if (const int error = fault::strike("program_start")) return error;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  Start start = {path, words, environment, ends[1], 0};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (const int error = detail::run_beside(detach, &start, 2 * kStackBytes)) start.error = error;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (start.error == 0) await_end(ends[0], ready_ms);
  close(ends[0]);
  return start.error;
}

int folders_make(const char* path) {
  const ErrnoKept kept;
  if (const int error = fault::strike("folders_make")) return error;
  char folder[PATH_MAX];
  for (const char* slash = path; (slash = std::strchr(slash + 1, '/')) != nullptr;) {
    const auto length = static_cast<std::size_t>(slash - path);
    if (length >= sizeof folder) return ENAMETOOLONG;
    std::memcpy(folder, path, length);
    folder[length] = 0;
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) continue;
    const int error = errno;
    struct stat status{};
    if (stat(folder, &status) != 0) return error;  // it may be there where this process may make none
  }
  return 0;
}

int output_write(const char* path, const char* text, std::size_t bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("output_write")) return error;
  struct stat status{};
  const bool is_other = lstat(path, &status) == 0 && !S_ISREG(status.st_mode);
  char next[PATH_MAX];
  if (is_other || std::snprintf(next, sizeof next, "%s.%d", path, getpid()) >= PATH_MAX)
    return write_file(path, text, bytes);
  int error = write_file(next, text, bytes);
  if (error == EACCES) return write_file(path, text, bytes);  // no new file in this folder
  if (error == 0 && rename(next, path) != 0) error = errno;
  if (error != 0) (void)unlink(next);
  return error;
}

}  // namespace stretto::sys
