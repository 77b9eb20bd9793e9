// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/calls.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "overlap/call_table.hpp"
#include "sys/call_layouts.hpp"

namespace stretto::overlap {
namespace {

// Signals that the thread must be able to get while its calls are caught.
constexpr std::uint64_t kOurs = std::uint64_t{1} << (SIGSYS - 1) | std::uint64_t{1} << (SIGSEGV - 1);

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
      case Operand::Kind::string: return wait_for_string(at);
      case Operand::Kind::bits: return wait(at, (std::min(by, kMostBits) + 63) / 64 * sizeof(std::uint64_t));
      case Operand::Kind::pages: return wait(at, by / kLeastPage + 1);
      case Operand::Kind::vector: return wait_for_vector(at, by);
      case Operand::Kind::message: return wait_for_message(at);
      case Operand::Kind::messages: return wait_for_messages(at, by);
      case Operand::Kind::futex: return wait_for_futex(at, static_cast<int>(by));
      case Operand::Kind::control: return wait_for_control(at, by);
      case Operand::Kind::file: return wait_for_file(at, static_cast<int>(by));
      case Operand::Kind::mask: return check_mask(at);
      case Operand::Kind::mask_pair: return check_mask_pair(at);
      case Operand::Kind::new_mask:
        return static_cast<int>(by) == SIG_UNBLOCK ? wait(at, sizeof kOurs) : check_mask(at);
      case Operand::Kind::action: return check_action(at, static_cast<int>(by));
      case Operand::Kind::alternate: return at != 0 ? ENOSYS : 0;
      case Operand::Kind::mapping: return waits_.hears_mappings ? 0 : wait(at, by);
      case Operand::Kind::advice: return waits_.hears_mappings && !advice_touches() ? 0 : wait(at, by);
      case Operand::Kind::heap_end: return waits_.hears_mappings ? 0 : wait_for_heap_end(at);
      case Operand::Kind::everything: return ENOSYS;
    }
    return ENOSYS;
  }

 private:
  static constexpr std::uint64_t kMostPieces = 1024;  // of iovecs and messages: more are EINVAL
  static constexpr std::uint64_t kMostBits = 1 << 20, kLeastPage = 4096, kMostName = 4096;

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

  // Its end lies before pages that need not be there.
  int wait_for_string(std::uint64_t at) const {
    char part[256];
    for (std::uint64_t done = 0; at != 0 && done < kMostName;) {
      const std::uint64_t from = at + done, now = std::min(sizeof part, kLeastPage - from % kLeastPage);
      if (const int error = read(from, part, now)) return error == EFAULT ? error : wait(at, kMostName);
      if (std::memchr(part, 0, now) != nullptr) return 0;
      done += now;
    }
    return 0;
  }

  // Of others the length is not known, or they point further.
  int wait_for_control(std::uint64_t at, std::uint64_t request) const {
    switch (request) {
      case FIOCLEX:
      case FIONCLEX: return 0;
      case FIONREAD:
      case FIONBIO:
      case FIOASYNC:
      case TIOCOUTQ:
      case TIOCGPGRP: return wait(at, sizeof(int));
      case TIOCGWINSZ: return wait(at, sizeof(winsize));
      case TCGETS: return wait(at, 64);
      default: return ENOSYS;
    }
  }

  int wait_for_file(std::uint64_t at, int operation) const {
    switch (operation) {
      case F_DUPFD:
      case F_DUPFD_CLOEXEC:
      case F_GETFD:
      case F_SETFD:
      case F_GETFL:
      case F_SETFL:
      case F_GETOWN:
      case F_SETOWN:
      case F_GETPIPE_SZ:
      case F_SETPIPE_SZ: return 0;
      case F_GETLK:
      case F_SETLK:
      case F_SETLKW:
      case F_OFD_GETLK:
      case F_OFD_SETLK:
      case F_OFD_SETLKW: return wait(at, sizeof(struct flock));
      default: return ENOSYS;
    }
  }

  // A thread that blocks our signals would die of its next call.
  int check_mask(std::uint64_t at) const {
    std::uint64_t mask = 0;
    if (at == 0) return 0;
    if (const int error = read(at, &mask, sizeof mask)) return error;
    return (mask & kOurs) != 0 ? ENOSYS : 0;
  }
  int check_mask_pair(std::uint64_t at) const {
    std::uint64_t pair[2] = {};
    if (at == 0) return 0;
    if (const int error = read(at, pair, sizeof pair)) return error;
    return check_mask(pair[0]);
  }
  int check_action(std::uint64_t at, int signal) const {
    std::uint64_t action[4] = {};  // handler, flags, return, mask
    if (at == 0) return 0;
    if (const int error = read(at, action, sizeof action)) return error;
    const bool handles = action[0] > 1;  // neither SIG_DFL nor SIG_IGN
    const bool is_ours = signal == SIGSYS || signal == SIGSEGV || (action[3] & kOurs) != 0;
    return is_ours || (handles && waits_.beside_threads) ? ENOSYS : 0;
  }

  [[nodiscard]] bool advice_touches() const {
    const long advice = call_.arguments[2];
    return advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE || advice == MADV_COLLAPSE;
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
  const CallRow* const known = find_call(call.number);
  const Waiter waiter(waits, call);
  bool understood = known != nullptr;
  for (int i = 0; i < CallRow::kMostOperands && understood; ++i) {
    const int error = waiter.wait_for(known->operands[i]);
    understood = error == 0 || error == EFAULT;
  }
  if (understood) return {false, sys::call_through(call.number, call.arguments)};
  waits.complete_all(waits.context);
  return {true, 0};
}

}  // namespace stretto::overlap
