// SPDX-License-Identifier: BSD-3-Clause
// Spare memory and guarded buffers (faults.hpp), by userfaultfd.
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/faults.hpp"
#include "sys/faults_signal.hpp"
#include "sys/faults_steps.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::advance;
using detail::ErrnoKept;
using detail::halving;
using detail::retried;
using detail::twice;

// UFFDIO_MOVE, Linux 6.8.
struct MoveRequest {
  std::uint64_t to, from, bytes, mode;
  std::int64_t moved;
};
constexpr unsigned long kMoveRequest = _IOWR(UFFDIO, 0x05, MoveRequest);
constexpr std::uint64_t kAllowHoles = 1u << 1;

// Of one move: 2 MiB where pages have 4 KiB. The kernel holds a lock for so long.
constexpr std::size_t kPiecePages = 512;

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Up to the next piece's beginning, so that no huge page is cut in two.
std::size_t piece_bytes(const Faults& faults, const char* at, std::size_t left) {
  const std::size_t piece = kPiecePages * faults.page_bytes;
  return std::min(left, piece - static_cast<std::size_t>(number(at) % piece));
}

// ---- ranges ----

int register_missing(const Faults& faults, Pages pages, const char* point) {
  if (faults.mode == FaultMode::signal) return 0;
  if (const int error = fault::strike(point)) return error;
  uffdio_register request{};
  request.range = {number(pages.at), pages.bytes};
  request.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(faults.fd, UFFDIO_REGISTER, &request) == 0) return 0;
  const int error = errno;
  if (error == ENOMEM) (void)ioctl(faults.fd, UFFDIO_UNREGISTER, &request.range);  // a part may be registered
  return error == EBUSY ? EADDRINUSE : error;
}

int unregister(const Faults& faults, Pages pages) {
  if (faults.mode == FaultMode::signal) return 0;
  if (const int error = fault::strike("faults_release")) return error;
  uffdio_range range{number(pages.at), pages.bytes};
  return ioctl(faults.fd, UFFDIO_UNREGISTER, &range) == 0 ? 0 : errno;
}

int free_pages(Pages pages) {
  if (const int error = fault::strike("spare_empty")) return error;
  return madvise(pages.at, pages.bytes, MADV_DONTNEED) == 0 ? 0 : errno;
}

// Which pages of a piece are there, a byte each.
int find_resident(const Faults& faults, Pages piece, unsigned char (&there)[kPiecePages]) {
  if (const int error = fault::strike("pages_resident")) return error;
  if (mincore(piece.at, piece.bytes, there) != 0) return errno;
  for (std::size_t i = 0; i < piece.bytes / faults.page_bytes; ++i) there[i] &= 1;
  return 0;
}

// ---- steps of the kernel ----

int move_once(const Faults& faults, char* to, char* from, std::size_t bytes, std::uint64_t mode, std::size_t* done) {
  if (const int error = fault::strike("faults_move")) return error;
  MoveRequest request{number(to), number(from), bytes, mode, 0};
  const int result = retried([&] { return ioctl(faults.fd, kMoveRequest, &request); });
  const int error = result == 0 ? 0 : errno;
  if (request.moved > 0) *done += static_cast<std::size_t>(request.moved);
  return error;
}

int copy_once(const Faults& faults, char* to, const char* from, std::size_t bytes, std::size_t* done) {
  if (const int error = fault::strike("faults_copy")) return error;
  uffdio_copy request{};
  request.dst = number(to);
  request.src = number(from);
  request.len = bytes;
  const int result = retried([&] { return ioctl(faults.fd, UFFDIO_COPY, &request); });
  const int error = result == 0 ? 0 : errno;
  if (request.copy > 0) *done += static_cast<std::size_t>(request.copy);
  return error;
}

int zero_once(const Faults& faults, char* to, std::size_t bytes, std::size_t* done) {
  if (const int error = fault::strike("faults_zero")) return error;
  uffdio_zeropage request{};
  request.range = {number(to), bytes};
  const int result = retried([&] { return ioctl(faults.fd, UFFDIO_ZEROPAGE, &request); });
  const int error = result == 0 ? 0 : errno;
  if (request.zeropage > 0) *done += static_cast<std::size_t>(request.zeropage);
  return error;
}

// ---- moving ----

// Changes nothing in the page, but the kernel must give this process a page of its own.
void write_once(char* page) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile("lock orb $0, %0" : "+m"(*page));
#else
  __atomic_fetch_or(static_cast<volatile char*>(page), 0, __ATOMIC_RELAXED);
#endif
}

// The first page is there: the kernel said that it is busy. Whether the others are there must be
// asked first: a thread that touches a missing page of a guarded buffer would wait for itself.
void write_pages(const Faults& faults, Pages piece) {
  unsigned char there[kPiecePages];
  write_once(piece.at);
  if (find_resident(faults, piece, there) != 0) return;
  for (std::size_t i = 1; i < piece.bytes / faults.page_bytes; ++i)
    if (there[i]) write_once(piece.at + i * faults.page_bytes);
}

// EBUSY: the page is shared with a forked child, or pinned. A write cures the first. After a fork
// all pages are shared: the first busy page of a piece has the whole piece written. All of it may
// be written, as the kernel looks at mappings before it looks at pages.
int move_pages(const Faults& faults, char* to, char* from, std::size_t bytes, std::uint64_t mode, std::size_t* moved) {
  std::size_t written = 0;
  return advance(bytes, moved, [&](std::size_t at, std::size_t left) {
    std::size_t piece = piece_bytes(faults, from + at, left);
    const auto move = [&](std::size_t part) { return move_once(faults, to + at, from + at, part, mode, moved); };
    const int error = halving(faults, EINVAL, &piece, move);
    if (error != EBUSY || *moved != at) return error;
    write_pages(faults, {from + at, at < written ? faults.page_bytes : piece});
    written = at + piece;
    return move(piece);
  });
}

// Gives spare memory zero pages where a buffer had none. EEXIST: it has one that is swapped out.
int fill_holes(const Faults& faults, Pages spare) {
  for (std::size_t begin = 0; begin < spare.bytes;) {
    const Pages piece{spare.at + begin, piece_bytes(faults, spare.at + begin, spare.bytes - begin)};
    unsigned char there[kPiecePages];
    if (const int error = find_resident(faults, piece, there)) return error;
    const std::size_t count = piece.bytes / faults.page_bytes;
    for (std::size_t i = 0, end = 0; i < count; i = end + 1) {
      for (end = i; end < count && !there[end]; ++end) {
      }
      std::size_t done = 0;
      const int error = faults_zero(faults, piece.at + i * faults.page_bytes, (end - i) * faults.page_bytes, &done);
      if (error == EEXIST) {
        end = i + done / faults.page_bytes;
      } else if (error != 0) {
        return error;
      }
    }
    begin += piece.bytes;
  }
  return 0;
}

// Another thread's munmap waits for the reader. It takes microseconds; a reader that is this thread
// never comes.
template <class Action>
int patiently(Action action) {
  constexpr int kTries = 1000;
  constexpr std::uint64_t kNapNs = 100'000;
  int error = action();
  for (int i = 0; i < kTries && error == EAGAIN; ++i) {
    nap_ns(kNapNs);
    error = action();
  }
  return error;
}

int move_out(const Faults& faults, Pages pages, Pages spare, std::size_t* moved) {
  std::uint64_t mode = 0;
  const auto move = [&] {
    return patiently([&] { return move_pages(faults, spare.at, pages.at, pages.bytes, mode, moved); });
  };
  int error = move();
  const std::size_t whole = *moved;
  if (error == ENOENT) {
    mode = kAllowHoles;
    error = move();
    if (error == 0) error = patiently([&] { return fill_holes(faults, {spare.at + whole, pages.bytes - whole}); });
  }
  std::size_t left = 0;
  if (error == 0) error = pages_resident(faults, pages, &left);
  return error == 0 && left != 0 ? EOPNOTSUPP : error;
}

// Without moves: neither memory waits any more, so bytes can be copied. Works while an event waits.
int copy_back(const Faults& faults, Pages pages, Pages spare) {
  if (const int error = twice([&] { return unregister(faults, spare); })) return error;
  if (const int error = twice([&] { return unregister(faults, pages); })) return error;
  std::memcpy(pages.at, spare.at, pages.bytes);
  (void)twice([&] { return free_pages(spare); });
  return twice([&] { return register_missing(faults, spare, "spare_map.guard"); });
}

// Ends a guard that failed after `moved` bytes were out.
int put_back(const Faults& faults, Pages pages, Pages spare, std::size_t moved) {
  std::size_t back = 0;
  const auto move = [&] { return move_pages(faults, pages.at, spare.at, moved, kAllowHoles, &back); };
  if (twice(move) != 0)
    return copy_back(faults, {pages.at + back, moved - back}, {spare.at + back, moved - back}) != 0 ||
                   twice([&] { return unregister(faults, pages); }) != 0
               ? ENOTRECOVERABLE
               : 0;
  return twice([&] { return unregister(faults, pages); });
}

// ---- spare memory ----

// Where in [from, from + unit) an address lies as `like` does in its unit.
char* lying_as(char* from, const void* like, std::size_t unit, std::size_t page) {
  const std::uint64_t offset = number(like) / page * page % unit;
  return from + (offset + unit - number(from) % unit) % unit;
}

// As for shared mappings: after mlockall(MCL_FUTURE) it would get all its pages at once.
int make_usable(Pages spare) {
  if (const int error = fault::strike("spare_map.protect")) return error;
  (void)munlock(spare.at, spare.bytes);
  (void)madvise(spare.at, spare.bytes, MADV_DONTFORK);
  return mprotect(spare.at, spare.bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
}

}  // namespace

int spare_map(const Faults& faults, std::size_t bytes, const void* like, Pages* spare) {
  const ErrnoKept kept;
  if (const int error = fault::strike("spare_map")) return error;
  const std::size_t page = faults.page_bytes, unit = std::max(faults.huge_bytes, page);
  bytes = (bytes + page - 1) / page * page;
  void* const mapped = mmap(nullptr, bytes + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return errno;
  char* const begin = static_cast<char*>(mapped);
  const Pages made{lying_as(begin, like, unit, page), bytes};
  unmap(made.at == begin ? nullptr : begin, static_cast<std::size_t>(made.at - begin));
  unmap(made.at + bytes, static_cast<std::size_t>(begin + unit - made.at));
  int error = make_usable(made);
  if (error == 0) error = register_missing(faults, made, "spare_map.guard");
  if (error != 0) {
    unmap(made.at, made.bytes);
    return error;
  }
  *spare = made;
  return 0;
}

void spare_unmap(const Faults& faults, Pages* spare) {
  const ErrnoKept kept;
  if (spare->at == nullptr) return;
  (void)twice([&] { return unregister(faults, *spare); });  // so that it is no event
  unmap(spare->at, spare->bytes);
  *spare = {};
}

// Unregistered, so that it is no event, which the reader could not wait for.
int spare_empty(const Faults& faults, Pages part) {
  const ErrnoKept kept;
  if (const int error = unregister(faults, part)) return error;
  const int error = free_pages(part);
  const int again = twice([&] { return register_missing(faults, part, "spare_map.guard"); });
  return error != 0 ? error : again;
}

int faults_guard(const Faults& faults, Pages pages, Pages spare) {
  const ErrnoKept kept;
  if (faults.mode == FaultMode::signal) return signal_guard(faults, pages, spare);
  if (!faults.can_move) return EOPNOTSUPP;
  if (const int error = register_missing(faults, pages, "faults_guard")) return error;
  std::size_t moved = 0;
  const int error = move_out(faults, pages, spare, &moved);
  if (error == 0) return 0;
  return put_back(faults, pages, spare, moved) == 0 ? error : ENOTRECOVERABLE;
}

int faults_release(const Faults& faults, Pages pages) {
  const ErrnoKept kept;
  return unregister(faults, pages);
}

int faults_move_in(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved) {
  const ErrnoKept kept;
  if (faults.mode == FaultMode::signal) return signal_move_in(faults, to, from, bytes, moved);
  return move_pages(faults, to, from, bytes, 0, moved);
}

int faults_copy(const Faults& faults, char* to, const char* from, std::size_t bytes, std::size_t* copied) {
  const ErrnoKept kept;
  if (faults.mode == FaultMode::signal) return ENOTSUP;
  return advance(bytes, copied, [&](std::size_t at, std::size_t left) {
    return halving(faults, ENOENT, &left,
                   [&](std::size_t part) { return copy_once(faults, to + at, from + at, part, copied); });
  });
}

int faults_zero(const Faults& faults, char* to, std::size_t bytes, std::size_t* zeroed) {
  const ErrnoKept kept;
  if (faults.mode == FaultMode::signal) return ENOTSUP;
  return advance(bytes, zeroed, [&](std::size_t at, std::size_t left) {
    return halving(faults, ENOENT, &left, [&](std::size_t part) { return zero_once(faults, to + at, part, zeroed); });
  });
}

int faults_wake(const Faults& faults, Pages pages) {
  const ErrnoKept kept;
  if (faults.mode == FaultMode::signal) return 0;  // threads look again by themselves
  if (const int error = fault::strike("faults_wake")) return error;
  uffdio_range range{number(pages.at), pages.bytes};
  return ioctl(faults.fd, UFFDIO_WAKE, &range) == 0 ? 0 : errno;
}

int pages_resident(const Faults& faults, Pages pages, std::size_t* count) {
  const ErrnoKept kept;
  std::size_t found = 0;
  for (std::size_t at = 0; at < pages.bytes;) {
    const Pages piece{pages.at + at, piece_bytes(faults, pages.at + at, pages.bytes - at)};
    unsigned char there[kPiecePages];
    if (const int error = find_resident(faults, piece, there)) return error;
    for (std::size_t i = 0; i < piece.bytes / faults.page_bytes; ++i) found += there[i];
    at += piece.bytes;
  }
  *count = found;
  return 0;
}

}  // namespace stretto::sys
