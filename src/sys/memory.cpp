// SPDX-License-Identifier: BSD-3-Clause
// Memory: segments that others map, and address space.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

// Linux logs a warning about memory files that do not say whether they may be executed. Where
// vm.memfd_noexec is 2 it refuses them. Before 6.3 Linux does not know the flag.
int create_memory_file(const char* name) {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
  return fd < 0 && errno == EINVAL ? memfd_create(name, flags) : fd;
}

// Past RLIMIT_FSIZE ftruncate not only fails but also raises SIGXFSZ, which would kill the host
// program.
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

// The seal against shrinking keeps the pages of every peer's mapping (no SIGBUS). The seal against
// further seals keeps every peer from taking this process's right to write.
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

// Reserves in pieces. On some kernels any signal interrupts fallocate, which then gives the pages
// of that call back; newer kernels react to a fatal signal only. One large call would never end
// under a profiler's timer.
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

int shared_file_open(const char* path, std::size_t bytes, int* fd) {
  const ErrnoKept kept;
  if (const int error = fault::strike("shared_file_open")) return error;
  const int opened = retried([&] { return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600); });
  if (opened < 0) return errno;
  struct stat status{};
  int error = fstat(opened, &status) == 0 ? 0 : errno;
  if (error == 0 && (status.st_uid != geteuid() || !S_ISREG(status.st_mode))) error = EPERM;
  if (error == 0) error = check_size_limit(bytes);
  if (error == 0 && status.st_size == 0) {  // all processes that find it empty do the same
    error = fault::strike("shared_file_open.reserve");
    if (error == 0) error = posix_fallocate(opened, 0, static_cast<off_t>(bytes));
  }
  if (error == 0)
    error = fstat(opened, &status) != 0 ? errno : static_cast<std::size_t>(status.st_size) < bytes ? EPERM : 0;
  if (error != 0) {
    close(opened);
    return error;
  }
  *fd = opened;
  return 0;
}

int remove_file(const char* path) {
  const ErrnoKept kept;
  if (const int error = fault::strike("remove_file")) return error;
  return unlink(path) == 0 ? 0 : errno;
}

std::size_t memory_file_bytes(int fd) {
  const ErrnoKept kept;
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat status{};
  const bool sound = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &status) == 0;
  return sound ? static_cast<std::size_t>(status.st_size) : 0;
}

int file_read(int fd, std::uint64_t offset, void* to, std::size_t bytes) {
  const ErrnoKept kept;
  if (const int error = fault::strike("file_read")) return error;
  const ssize_t got = retried([&] { return pread(fd, to, bytes, static_cast<off_t>(offset)); });
  if (got < 0) return errno;
  return static_cast<std::size_t>(got) == bytes ? 0 : EIO;
}

FileId file_id(int fd) {
  const ErrnoKept kept;
  struct stat status{};
  if (fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

int map_shared(int fd, std::size_t bytes, Access access, void** address) {
  const ErrnoKept kept;
  if (const int error = fault::strike("map_shared")) return error;
  const int protection = access == Access::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
  // Maps without access first. After mlockall(MCL_FUTURE) an accessible mapping would get all its
  // pages at once, and keep them.
  void* mapped = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  (void)munlock(mapped, bytes);
  if (mprotect(mapped, bytes, protection) != 0) {
    const int error = errno;
    munmap(mapped, bytes);
    return error;
  }
  *address = mapped;
  return 0;
}

int map_private(std::size_t bytes, void** address) {
  const ErrnoKept kept;
  if (const int error = fault::strike("map_private")) return error;
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return errno;
  *address = mapped;
  return 0;
}

int map_unforked(std::size_t bytes, void** address) {
  const ErrnoKept kept;
  void* mapped = nullptr;
  if (const int error = map_private(bytes, &mapped)) return error;
  int error = fault::strike("map_unforked.advise");
  if (error == 0 && madvise(mapped, bytes, MADV_DONTFORK) != 0) error = errno;
  if (error != 0) {
    munmap(mapped, bytes);
    return error;
  }
  *address = mapped;
  return 0;
}

void enter_pages(void* address, std::size_t bytes) {
  const ErrnoKept kept;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t first = at / page * page;  // the kernel wants a page's beginning, and rounds the length up
  madvise(reinterpret_cast<void*>(first), at + bytes - first, MADV_POPULATE_WRITE);
}

int map_more(void* address, std::size_t bytes, void** more) {
  const ErrnoKept kept;
  if (const int error = fault::strike("map_more")) return error;
  void* mapped = mremap(address, 0, bytes, MREMAP_MAYMOVE);  // the old length 0 keeps the old mapping
  if (mapped == MAP_FAILED) return errno;
  *more = mapped;
  return 0;
}

void dump_pages(void* address, std::size_t bytes, bool dumped) {
  const ErrnoKept kept;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address), end = begin + bytes;
  const std::uintptr_t first = (dumped ? begin : begin + page - 1) / page * page;
  const std::uintptr_t last = (dumped ? end + page - 1 : end) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, dumped ? MADV_DODUMP : MADV_DONTDUMP);
}

AddressSpace address_space() {
  const ErrnoKept kept;
  AddressSpace space;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return space;
  space.limit = space.left = limit.rlim_cur;
  char text[128];
  std::size_t bytes = 0;
  if (detail::read_small_file("/proc/self/statm", text, sizeof text, &bytes) != 0) return space;
  const std::uint64_t used = std::strtoull(text, nullptr, 10) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  space.left = used < space.limit ? space.limit - used : 0;
  return space;
}

void unmap(void* address, std::size_t bytes) {
  const ErrnoKept kept;
  if (address) munmap(address, bytes);
}

void close_descriptor(int fd) {
  const ErrnoKept kept;
  if (fd >= 0) close(fd);  // not retried: Linux has closed it even after EINTR
}

std::uint64_t descriptor_limit() {
  const ErrnoKept kept;
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace stretto::sys
