// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/calls.hpp"

#include <algorithm>

#include "sys/call_layouts.hpp"

namespace stretto::overlap {
namespace {

// What an argument points to.
struct Operand {
  enum class Kind : std::uint8_t {
    none,
    bytes,     // argument `by` counts elements of `size` bytes
    fixed,     // `size` bytes
    counted,   // argument `by` points to the length, a socklen_t
    vector,    // argument `by` counts iovecs
    message,   // a msghdr
    messages,  // argument `by` counts mmsghdrs
    futex,     // as the operation in argument `by` says
    mapping,   // `by` counts bytes, of which the mapping changes: an event of the guard
    heap_end,  // where the heap will end: the same for what lies behind it
  };
  Kind kind = Kind::none;
  std::uint8_t at = 0;  // the argument that points
  std::uint8_t by = 0;
  std::uint16_t size = 1;
};

constexpr int kMostOperands = 2;
struct Known {
  long number;
  Operand operands[kMostOperands];
};

constexpr Operand bytes(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::bytes, at, by, 1}; }
constexpr Operand array(std::uint8_t at, std::uint8_t by, std::size_t size) {
  return {Operand::Kind::bytes, at, by, static_cast<std::uint16_t>(size)};
}
constexpr Operand fixed(std::uint8_t at, std::size_t size) {
  return {Operand::Kind::fixed, at, 0, static_cast<std::uint16_t>(size)};
}
constexpr Operand counted(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::counted, at, by, 1}; }
constexpr Operand vector(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::vector, at, by, 1}; }
constexpr Operand message(std::uint8_t at) { return {Operand::Kind::message, at, 0, 1}; }
constexpr Operand messages(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::messages, at, by, 1}; }
constexpr Operand mapping(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::mapping, at, by, 1}; }
constexpr Operand heap_end() { return {Operand::Kind::heap_end, 0, 0, 1}; }
constexpr Operand futex(std::uint8_t at, std::uint8_t by) { return {Operand::Kind::futex, at, by, 1}; }

// Calls that may run within a signal handler, and that touch only what stands here.
constexpr Known kKnown[] = {
    {SYS_read, {bytes(1, 2)}},
    {SYS_write, {bytes(1, 2)}},
    {SYS_pread64, {bytes(1, 2)}},
    {SYS_pwrite64, {bytes(1, 2)}},
    {SYS_readv, {vector(1, 2)}},
    {SYS_writev, {vector(1, 2)}},
    {SYS_preadv, {vector(1, 2)}},
    {SYS_pwritev, {vector(1, 2)}},
    {SYS_preadv2, {vector(1, 2)}},
    {SYS_pwritev2, {vector(1, 2)}},
    {SYS_sendto, {bytes(1, 2), bytes(4, 5)}},
    {SYS_recvfrom, {bytes(1, 2), counted(4, 5)}},
    {SYS_sendmsg, {message(1)}},
    {SYS_recvmsg, {message(1)}},
    {SYS_sendmmsg, {messages(1, 2)}},
    {SYS_recvmmsg, {messages(1, 2), fixed(4, sizeof(timespec))}},
    {SYS_sendfile, {fixed(2, sizeof(loff_t))}},
    {SYS_splice, {fixed(1, sizeof(loff_t)), fixed(3, sizeof(loff_t))}},
    {SYS_copy_file_range, {fixed(1, sizeof(loff_t)), fixed(3, sizeof(loff_t))}},

    {SYS_socket, {}},
    {SYS_bind, {bytes(1, 2)}},
    {SYS_connect, {bytes(1, 2)}},
    {SYS_listen, {}},
    {SYS_accept, {counted(1, 2)}},
    {SYS_accept4, {counted(1, 2)}},
    {SYS_getsockname, {counted(1, 2)}},
    {SYS_getpeername, {counted(1, 2)}},
    {SYS_setsockopt, {bytes(3, 4)}},
    {SYS_getsockopt, {counted(3, 4)}},
    {SYS_shutdown, {}},

    {SYS_close, {}},
    {SYS_dup, {}},
    {SYS_dup3, {}},
    {SYS_pipe2, {fixed(0, 2 * sizeof(int))}},
    {SYS_lseek, {}},
    {SYS_fsync, {}},
    {SYS_fdatasync, {}},
    {SYS_ftruncate, {}},
    {SYS_fstat, {fixed(1, sizeof(struct stat))}},
    {SYS_eventfd2, {}},
    {SYS_epoll_create1, {}},
    {SYS_epoll_ctl, {fixed(3, sizeof(epoll_event))}},
#if defined(__x86_64__)
    {SYS_poll, {array(0, 1, sizeof(pollfd))}},
    {SYS_epoll_wait, {array(1, 2, sizeof(epoll_event))}},
    {SYS_dup2, {}},
    {SYS_pipe, {fixed(0, 2 * sizeof(int))}},
#endif

    {SYS_futex, {futex(0, 1)}},
    {SYS_sched_yield, {}},
    {SYS_nanosleep, {fixed(0, sizeof(timespec)), fixed(1, sizeof(timespec))}},
    {SYS_clock_nanosleep, {fixed(2, sizeof(timespec)), fixed(3, sizeof(timespec))}},
    {SYS_clock_gettime, {fixed(1, sizeof(timespec))}},
    {SYS_gettimeofday, {fixed(0, sizeof(timeval)), fixed(1, 8)}},
    {SYS_getrandom, {bytes(0, 1)}},
    {SYS_sched_getaffinity, {bytes(2, 1)}},
    {SYS_uname, {fixed(0, sizeof(utsname))}},
    {SYS_getpid, {}},
    {SYS_gettid, {}},
    {SYS_getppid, {}},
    {SYS_getuid, {}},
    {SYS_geteuid, {}},
    {SYS_getgid, {}},
    {SYS_getegid, {}},

    {SYS_brk, {heap_end()}},
    {SYS_mmap, {mapping(0, 1)}},
    {SYS_munmap, {mapping(0, 1)}},
    {SYS_mremap, {mapping(0, 1), mapping(4, 2)}},
    {SYS_mprotect, {mapping(0, 1)}},
    {SYS_madvise, {mapping(0, 1)}},
};

const Known* find(long number) {
  for (const Known& known : kKnown)
    if (known.number == number) return &known;
  return nullptr;
}

std::uint64_t number(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

// ---- waiting for what a call touches ----

// Functions return 0, or EFAULT: the kernel will say so. Other errors: what the call touches is not
// known.
class Waiter {
 public:
  Waiter(const CallWaits& waits, const sys::CaughtCall& call) : waits_(waits), call_(call) {}

  int wait_for(const Operand& operand) const {
    const std::uint64_t at = argument(operand.at), by = argument(operand.by);
    switch (operand.kind) {
      case Operand::Kind::none: return 0;
      case Operand::Kind::bytes: return wait(at, by < ~std::uint64_t{0} / operand.size ? by * operand.size : by);
      case Operand::Kind::fixed: return wait(at, operand.size);
      case Operand::Kind::counted: return wait_for_counted(at, by);
      case Operand::Kind::vector: return wait_for_vector(at, by);
      case Operand::Kind::message: return wait_for_message(at);
      case Operand::Kind::messages: return wait_for_messages(at, by);
      case Operand::Kind::futex: return wait_for_futex(at, static_cast<int>(by));
      case Operand::Kind::mapping: return waits_.hears_mappings ? 0 : wait(at, by);
      case Operand::Kind::heap_end: return waits_.hears_mappings ? 0 : wait_for_heap_end(at);
    }
    return 0;
  }

 private:
  static constexpr std::uint64_t kMostPieces = 1024;  // of iovecs and messages: more are EINVAL

  [[nodiscard]] std::uint64_t argument(int i) const { return static_cast<std::uint64_t>(call_.arguments[i]); }

  int wait(std::uint64_t at, std::uint64_t bytes) const {
    if (at != 0 && bytes != 0) waits_.wait_for(waits_.context, at, bytes);
    return 0;
  }
  // What lies in memory that may be guarded itself.
  int read(std::uint64_t at, void* to, std::size_t bytes) const {
    (void)wait(at, bytes);
    return sys::copy_through(at, to, bytes);
  }

  int wait_for_heap_end(std::uint64_t at) const {
    const auto end = static_cast<std::uint64_t>(sys::call_through(SYS_brk, {}));
    return at != 0 && at < end ? wait(at, end - at) : 0;
  }

  int wait_for_counted(std::uint64_t at, std::uint64_t length_at) const {
    socklen_t length = 0;
    if (length_at == 0) return 0;
    if (const int error = read(length_at, &length, sizeof length)) return error;
    return wait(at, length);
  }

  int wait_for_vector(std::uint64_t at, std::uint64_t count) const {
    constexpr std::uint64_t kBatch = 16;
    iovec pieces[kBatch];
    if (count > kMostPieces) return 0;
    for (std::uint64_t done = 0; done < count; done += kBatch) {
      const std::uint64_t now = std::min(kBatch, count - done);
      if (const int error = read(at + done * sizeof(iovec), pieces, now * sizeof(iovec))) return error;
      for (std::uint64_t i = 0; i < now; ++i) (void)wait(number(pieces[i].iov_base), pieces[i].iov_len);
    }
    return 0;
  }

  int wait_for_message(std::uint64_t at) const {
    msghdr header;
    if (const int error = read(at, &header, sizeof header)) return error;
    (void)wait(number(header.msg_name), header.msg_namelen);
    (void)wait(number(header.msg_control), header.msg_controllen);
    return wait_for_vector(number(header.msg_iov), header.msg_iovlen);
  }

  int wait_for_messages(std::uint64_t at, std::uint64_t count) const {
    int error = wait(at, std::min(count, kMostPieces) * sizeof(mmsghdr));
    for (std::uint64_t i = 0; i < std::min(count, kMostPieces) && error == 0; ++i)
      error = wait_for_message(at + i * sizeof(mmsghdr));
    return error;
  }

  // Arguments that an operation does not use hold anything.
  int wait_for_futex(std::uint64_t at, int operation) const {
    (void)wait(at, sizeof(int));
    switch (operation & FUTEX_CMD_MASK) {
      case FUTEX_WAKE: return 0;
      case FUTEX_WAIT:
      case FUTEX_WAIT_BITSET:
      case FUTEX_LOCK_PI: return wait(argument(3), sizeof(timespec));
      case FUTEX_REQUEUE:
      case FUTEX_CMP_REQUEUE:
      case FUTEX_WAKE_OP: return wait(argument(4), sizeof(int));
      default: return ENOSYS;
    }
  }

  const CallWaits& waits_;
  const sys::CaughtCall& call_;
};

}  // namespace

sys::CallAnswer answer_call(void* context, const sys::CaughtCall& call) {
  const CallWaits& waits = *static_cast<const CallWaits*>(context);
  const Known* const known = find(call.number);
  const Waiter waiter(waits, call);
  bool understood = known != nullptr;
  for (int i = 0; i < kMostOperands && understood; ++i) {
    const int error = waiter.wait_for(known->operands[i]);
    understood = error == 0 || error == EFAULT;
  }
  if (understood) return {false, sys::call_through(call.number, call.arguments)};
  waits.complete_all(waits.context);
  return {true, 0};
}

}  // namespace stretto::overlap
