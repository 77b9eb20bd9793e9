// SPDX-License-Identifier: BSD-3-Clause
// Opening a userfaultfd, and what it says.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/faults.hpp"
#include "sys/faults_signal.hpp"
#include "sys/sys.hpp"

// Newer than some kernel headers that Stretto is built with.
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1  // Linux 5.11
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)  // Linux 6.1
#endif

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

constexpr std::uint64_t kExactAddress = 1u << 11;
constexpr std::uint64_t kMoveFeature = 1u << 16;
constexpr std::uint64_t kMemoryEvents = UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP;

// ---- opening ----

int open_by_device(int* fd) {
  if (const int error = fault::strike("faults_open.device")) return error;
  const int device = retried([] { return open("/dev/userfaultfd", O_RDWR | O_CLOEXEC); });
  if (device < 0) return errno;
  const int made = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  close(device);
  if (made < 0) return error;
  *fd = made;
  return 0;
}

int open_by_call(int flags, int* fd) {
  if (const int error = fault::strike("faults_open")) return error;
  const long made = syscall(SYS_userfaultfd, flags | O_CLOEXEC | O_NONBLOCK);
  if (made < 0) return errno;
  *fd = static_cast<int>(made);
  return 0;
}

int open_descriptor(FaultMode mode, int* fd) {
  if (mode == FaultMode::user) return open_by_call(UFFD_USER_MODE_ONLY, fd);
  return open_by_device(fd) == 0 ? 0 : open_by_call(0, fd);
}

// The kernel takes a wish once, and refuses one with a feature that it does not know.
int agree_features(int fd, std::uint64_t wish, std::uint64_t* granted) {
  if (const int error = fault::strike("faults_open.features")) return error;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = wish;
  if (ioctl(fd, UFFDIO_API, &api) != 0) return errno;
  *granted = api.features;
  return 0;
}

// A descriptor that is asked may not be used.
int ask_features(FaultMode mode, std::uint64_t* known) {
  int fd = -1;
  if (const int error = open_descriptor(mode, &fd)) return error;
  const int error = agree_features(fd, 0, known);
  close(fd);
  return error;
}

std::uint64_t wish_for(Events events) {
  std::uint64_t wish = kMoveFeature | kExactAddress | UFFD_FEATURE_THREAD_ID;
  if (events != Events::none) wish |= kMemoryEvents;
  if (events == Events::memory_and_fork) wish |= UFFD_FEATURE_EVENT_FORK;
  return wish;
}

int open_in_mode(FaultMode mode, Events events, int* fd, std::uint64_t* agreed) {
  std::uint64_t known = 0, ignored = 0;
  if (const int error = ask_features(mode, &known)) return error;
  int made = -1;
  if (const int error = open_descriptor(mode, &made)) return error;
  std::uint64_t wish = wish_for(events) & known;
  int error = agree_features(made, wish, &ignored);
  if (error == EPERM && (wish & UFFD_FEATURE_EVENT_FORK) != 0) {
    wish &= ~std::uint64_t{UFFD_FEATURE_EVENT_FORK};
    error = agree_features(made, wish, &ignored);
  }
  if (error != 0) {
    close(made);
    return error;
  }
  *fd = made;
  *agreed = wish;
  return 0;
}

std::size_t huge_page_bytes() {
  char text[32];
  std::size_t bytes = 0;
  const int error =
      detail::read_small_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text, &bytes);
  return error == 0 ? std::strtoull(text, nullptr, 10) : 0;
}

// ---- events ----

FaultEvent event_of(const uffd_msg& message) {
  FaultEvent event;
  switch (message.event) {
    case UFFD_EVENT_PAGEFAULT:
      event.kind = FaultEvent::Kind::fault;
      event.write = (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0;
      event.thread = message.arg.pagefault.feat.ptid;
      event.address = message.arg.pagefault.address;
      break;
    case UFFD_EVENT_FORK:
      event.kind = FaultEvent::Kind::fork;
      event.fd = static_cast<int>(message.arg.fork.ufd);
      break;
    case UFFD_EVENT_REMAP:
      event.kind = FaultEvent::Kind::remap;
      event.address = message.arg.remap.from;
      event.to = message.arg.remap.to;
      event.bytes = message.arg.remap.len;
      break;
    case UFFD_EVENT_REMOVE:
    case UFFD_EVENT_UNMAP:
      event.kind = message.event == UFFD_EVENT_UNMAP ? FaultEvent::Kind::unmap : FaultEvent::Kind::remove;
      event.address = message.arg.remove.start;
      event.bytes = message.arg.remove.end - message.arg.remove.start;
      break;
    default: break;
  }
  return event;
}

void learn_pages(Faults* faults) {
  faults->page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  faults->huge_bytes = huge_page_bytes();
  if (faults->huge_bytes != 0)
    faults->pagemap = retried([] { return open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC); });
}

}  // namespace

int faults_open_signal(const FaultOwner& owner, Faults* faults) {
  const ErrnoKept kept;
  int fd = -1;
  if (const int error = signal_open(owner, &fd)) return error;
  faults->fd = fd;
  faults->mode = FaultMode::signal;
  faults->can_move = true;
  learn_pages(faults);
  return 0;
}

int faults_open(FaultMode most, Events events, Faults* faults) {
  const ErrnoKept kept;
  if (most < FaultMode::user) return EPERM;
  int fd = -1;
  std::uint64_t agreed = 0;
  FaultMode mode = most;
  int error = open_in_mode(mode, events, &fd, &agreed);
  if (error != 0 && mode == FaultMode::kernel) {
    mode = FaultMode::user;
    error = open_in_mode(mode, events, &fd, &agreed);
  }
  if (error != 0) return error;
  faults->fd = fd;
  faults->mode = mode;
  faults->can_move = (agreed & kMoveFeature) != 0;
  faults->says_thread = (agreed & UFFD_FEATURE_THREAD_ID) != 0;
  faults->says_exact = (agreed & kExactAddress) != 0;
  faults->says_memory = (agreed & kMemoryEvents) == kMemoryEvents;
  faults->says_fork = (agreed & UFFD_FEATURE_EVENT_FORK) != 0;
  learn_pages(faults);
  return 0;
}

void faults_close(Faults* faults) {
  if (faults->mode == FaultMode::signal) signal_close();
  close_descriptor(faults->fd);
  if (faults->pagemap >= 0) close_descriptor(faults->pagemap);
  *faults = {};
}

int faults_next(const Faults& faults, FaultEvent (&events)[kMostFaultEvents], int* count) {
  const ErrnoKept kept;
  if (const int error = fault::strike("faults_next")) return error;
  if (faults.mode == FaultMode::signal) return signal_next(faults.fd, events, count);
  uffd_msg messages[kMostFaultEvents];
  const ssize_t got = retried([&] { return read(faults.fd, messages, sizeof messages); });
  if (got <= 0) return got == 0 ? EAGAIN : errno;
  *count = static_cast<int>(static_cast<std::size_t>(got) / sizeof(uffd_msg));
  for (int i = 0; i < *count; ++i) events[i] = event_of(messages[i]);
  return 0;
}

}  // namespace stretto::sys
