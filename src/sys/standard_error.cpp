// SPDX-License-Identifier: BSD-3-Clause
// Writing to standard error, and ending the process.
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "sys/detail.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {

void error_write(const char* text, std::size_t bytes) {
  const detail::ErrnoKept kept;
  (void)detail::retried([&] { return write(STDERR_FILENO, text, bytes); });
}

void end_by_abort() {
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

// A pipe tells at either end what lies in it. Sockets and terminals keep what they send apart.
std::size_t error_untaken() {
  const detail::ErrnoKept kept;
  struct stat file;
  const bool is_pipe = fstat(STDERR_FILENO, &file) == 0 && S_ISFIFO(file.st_mode);
  int bytes = 0;
  const bool told = ioctl(STDERR_FILENO, is_pipe ? FIONREAD : SIOCOUTQ, &bytes) == 0;
  return told && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

}  // namespace stretto::sys
