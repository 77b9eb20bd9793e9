// SPDX-License-Identifier: BSD-3-Clause
// Guarded pages: a thread that touches one waits until another thread has filled it (userfaultfd).
//
// A guarded buffer and *spare* memory trade places. faults_guard moves the buffer's own pages to
// spare memory. From then on a touch of the buffer waits. Data is received into the spare pages,
// which are warm. faults_move_in moves them back and wakes the threads that wait. No byte is
// copied, and no page is allocated or zeroed. Cost on a virtual EPYC: 24 us/MiB to guard, 20 us/MiB
// to move in, and some 5 us for each buffer.
//
// The mode says which accesses wait. With kernel faults all of them wait, also those of the kernel
// and of peers (write(2), process_vm_readv). In user mode only loads and stores of this process
// wait. Accesses of the kernel fail with EFAULT; sys/calls.hpp catches system calls for that case.
// By signals it is as in user mode, without userfaultfd: see faults_signal.hpp.
//
// Contract: as sys/sys.hpp. One thread, the *reader*, calls faults_next as long as the descriptor
// is open. With events, the kernel stops madvise, munmap, mremap and fork of other threads until
// the reader has read. So the reader calls none of these on registered memory; the functions below
// are safe. While an event is unread, moves and copies give EAGAIN: read, then continue.
//
// A forked child without the fork event silently reads zeros in guarded pages. Its descriptor still
// belongs to the parent's memory: close it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

enum class FaultMode : std::uint8_t { none, signal, user, kernel };

// Events beside faults.
enum class Events : std::uint8_t {
  none,
  memory,           // remove, unmap, remap
  memory_and_fork,  // the kernel grants the fork event with CAP_SYS_PTRACE only
};

struct Faults {
  int fd = -1;
  FaultMode mode = FaultMode::none;
  bool can_move = false;       // Linux 6.8; faults_guard needs it
  bool says_thread = false;    // events name the thread that waits
  bool says_exact = false;     // ... and the byte instead of its page, Linux 5.18
  bool says_memory = false;    // remove, unmap and remap events
  bool says_fork = false;      // fork events
  std::size_t page_bytes = 0;  // of an ordinary page
  std::size_t huge_bytes = 0;  // of a transparent huge page; 0: there are none
  int pagemap = -1;            // says where huge pages are; -1: not known
};

// Opens the best mode up to `most`, user or kernel: by /dev/userfaultfd, else by the system call,
// else user mode.
// EPERM, ENOSYS: no mode is granted (seccomp, containers). Events that the kernel refuses are left
// out.
int faults_open(FaultMode most, Events events, Faults* faults);
// By signals, which nobody gets without asking. `owner` is asked in the handler.
//   EALREADY  SIGSEGV has a handler that MPI_Init has not installed
//   ENOTSUP   not on this machine
struct FaultOwner {
  void* context = nullptr;
  bool (*is_away)(void* context, std::uint64_t address) = nullptr;
};
int faults_open_signal(const FaultOwner& owner, Faults* faults);
// Release all ranges first: a forked child may hold the descriptor, and with it the guard.
void faults_close(Faults* faults);

// Whole pages.
struct Pages {
  char* at = nullptr;
  std::size_t bytes = 0;
};
// The whole units of `unit` bytes (a power of two) in some memory.
inline Pages whole_pages(const void* memory, std::size_t bytes, std::size_t unit) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), mask = static_cast<std::uintptr_t>(unit - 1);
  const std::uintptr_t first = (begin + mask) & ~mask, last = (begin + bytes) & ~mask;
  return first < last ? Pages{reinterpret_cast<char*>(first), last - first} : Pages{};
}

// ---- spare memory ----
// Maps address space without pages, registers it, and keeps it from forked children. It has the
// same offset in a huge page as `like`, so that huge pages of a buffer at `like` move as a whole.
int spare_map(const Faults& faults, std::size_t bytes, const void* like, Pages* spare);
void spare_unmap(const Faults& faults, Pages* spare);
// Frees the pages in `part` of spare memory. Needed after faults_copy from it: faults_guard takes
// spare memory without pages only.
int spare_empty(const Faults& faults, Pages part);

// ---- a buffer ----
// Registers `pages` and moves them to `spare`, which has as many bytes and no pages (else EEXIST).
// All or nothing: after an error the buffer has its data and is not guarded.
//   EINVAL      not private anonymous memory, or read-only, locked, of hugetlbfs
//   EADDRINUSE  another userfaultfd has it
//   EBUSY       pinned: a device or the kernel would go on to use the pages that moved away.
//               Signals: the process has pinned memory, and nothing tells where
//   EOPNOTSUPP  the kernel cannot move pages, or pages are still there after they moved
//   EAGAIN      an event stays unread for 0.1 s: the reader sleeps, or called this itself
//   EALREADY    signals: SIGSEGV has a handler that is not Stretto's
//   EDEADLK     signals: the thread or a handler blocks SIGSEGV
//   ETOOMANYREFS  signals: the program has several threads
//   ENOTRECOVERABLE  several calls failed. The data lies in the buffer and in `spare`, and the
//               buffer may be guarded still
// No thread uses the buffer meanwhile. A page that a forked child shares is written once with what
// it holds, which ends the sharing. A page that was never touched becomes a zero page in `spare`.
int faults_guard(const Faults& faults, Pages pages, Pages spare);
// Ends the guard. Threads that wait go on, and find zeros where nothing was moved or copied.
int faults_release(const Faults& faults, Pages pages);

// Moves `bytes` bytes, whole pages, from spare memory to a guarded buffer, and wakes the threads
// that wait. *moved counts from the beginning, also after an error: pass it again to continue.
//   EAGAIN  an event waits to be read
//   EEXIST  the buffer has this page already
//   ENOENT, EINVAL  the program has unmapped it, or put something else there
int faults_move_in(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved);
// The same by copying from any memory that is not guarded. For data that is needed again.
int faults_copy(const Faults& faults, char* to, const char* from, std::size_t bytes, std::size_t* copied);
// The same with zeros.
int faults_zero(const Faults& faults, char* to, std::size_t bytes, std::size_t* zeroed);
// Lets threads that wait in `pages` look again.
int faults_wake(const Faults& faults, Pages pages);
// How many of the pages are in memory, by mincore. A guarded page is not.
int pages_resident(const Faults& faults, Pages pages, std::size_t* count);

// ---- huge pages ----
// Units of `huge_bytes` are counted from the one in which `pages` begins. Sets units[i], if the
// i-th one has its part of `pages` in a huge page, and counts them. units may be null: then *count
// is 0 or 1. ENOTSUP: the kernel does not say.
int huge_pages(const Faults& faults, Pages pages, std::uint8_t* units, std::size_t* count);
// Makes one huge page of the small ones in a unit. The kernel copies them, and memory waits
// meanwhile: 0.5 to 5 ms. EINVAL, EAGAIN, ...: they stay small.
int huge_page_make(const Faults& faults, char* unit);

// ---- events ----
struct FaultEvent {
  enum class Kind : std::uint8_t { fault, remove, unmap, remap, fork, other };
  Kind kind = Kind::other;
  bool write = false;        // fault: a store waits
  std::uint32_t thread = 0;  // fault: the thread that waits, 0: unknown
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // remove, unmap, remap: beginning at `address`
  std::uint64_t to = 0;     // remap: where it is now; it is guarded there
  int fd = -1;              // fork: the child's memory, with the same guards; serve or close it
};
inline constexpr int kMostFaultEvents = 16;
// Takes the events that have come. EAGAIN: none. Several events may name one page, and it may be
// filled by now.
int faults_next(const Faults& faults, FaultEvent (&events)[kMostFaultEvents], int* count);

}  // namespace stretto::sys
