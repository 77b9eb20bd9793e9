// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

// Linux logs a warning about memory files that do not say whether they may be executed, and where vm.memfd_noexec is 2
// refuses them; before 6.3 it does not know the flag.
int create_memory_file(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
  return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

// Past RLIMIT_FSIZE ftruncate does not only fail, it raises SIGXFSZ, which would kill the host program.
int check_size_limit(std::size_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return errno;
  return limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur ? EFBIG : 0;
}

int set_size(int fd, std::size_t bytes) {
  if (const int error = fault::strike("memfd_open.truncate")) return error;
  if (const int error = check_size_limit(bytes)) return error;
  return retried([&] { return ftruncate(fd, static_cast<off_t>(bytes)); }) == 0 ? 0 : errno;
}

// Against shrinking, so that no peer's mapping loses its pages (SIGBUS), and against further seals, so that no peer can
// take our right to write.
int seal(int fd) {
  if (const int error = fault::strike("memfd_open.seal")) return error;
  return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0 ? 0 : errno;
}

}  // namespace

int memfd_open(const char* name, std::size_t bytes, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("memfd_open")) return error;
  const int made = create_memory_file(name);
  if (made < 0) return errno;
  int error = set_size(made, bytes);
  if (error == 0) error = seal(made);
  if (error != 0) {
    close(made);
    return error;
  }
  *fd = made;
  return 0;
}

// In pieces: on kernels where any signal interrupts fallocate (newer ones wait for a fatal one), the pages of the
// interrupted call are given back, so that under a profiler's timer one large call would never end.
int memfd_reserve(int fd, std::uint64_t offset, std::uint64_t bytes) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{2} << 20;
  const ErrnoKept kept;
  if (const int error = fault::strike("memfd_reserve")) return error;
  while (bytes != 0) {
    const std::uint64_t piece = std::min(bytes, kPieceBytes);
    if (retried([&] {
          return fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(piece));
        }) != 0) {
      return errno;
    }
    offset += piece;
    bytes -= piece;
  }
  return 0;
}

int map_shared(int fd, std::size_t bytes, Access access, void** address) {
  const ErrnoKept kept;
  if (const int error = fault::strike("map_shared")) return error;
  const int protection = access == Access::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* mapped = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  *address = mapped;
  return 0;
}

void unmap(void* address, std::size_t bytes) {
  const ErrnoKept kept;
  if (address) munmap(address, bytes);
}

void close_descriptor(int fd) {
  const ErrnoKept kept;
  if (fd >= 0) close(fd);  // not retried: after EINTR Linux has closed it
}

}  // namespace stretto::sys
