// SPDX-License-Identifier: BSD-3-Clause
// Files that a process fills by stores into memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

}  // namespace

int growing_file_make(const char* path, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("growing_file_make")) return error;
  if (unlink(path) != 0 && errno != ENOENT) return errno;
  const int made = retried([&] { return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (made < 0) return errno;
  *fd = made;
  return 0;
}

int file_claim(const char* path) {
  const ErrnoKept kept;
  const int made = retried([&] { return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (made < 0) return errno;
  close(made);
  return 0;
}

int growing_file_map(int fd, std::uint64_t offset, std::size_t bytes, void** address) {
  const ErrnoKept kept;
  if (const int error = fault::strike("growing_file_map")) return error;
  const int reserved = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (reserved != 0) return reserved;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return errno;
  (void)madvise(memory, bytes, MADV_DONTFORK);
  *address = memory;
  return 0;
}

}  // namespace stretto::sys
