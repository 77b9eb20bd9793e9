// SPDX-License-Identifier: BSD-3-Clause
#include "sys/faults_signal.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "sys/actions.hpp"
#include "sys/call_layouts.hpp"
#include "sys/calls.hpp"
#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/faults_steps.hpp"
#include "sys/kernel_access.hpp"

namespace stretto::sys {

#if defined(__x86_64__) && defined(__LP64__)

namespace {

using detail::Action;
using detail::action_get;
using detail::action_set;
using detail::advance;
using detail::call;
using detail::ErrnoKept;
using detail::halving;
using detail::number_of;
using detail::twice;

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4  // Linux 5.7
#endif

// The order of the stores: context before is_away.
constinit std::atomic<void*> g_context{nullptr};
constinit std::atomic<bool (*)(void*, std::uint64_t)> g_is_away{nullptr};
constinit int g_fd = -1;
constinit std::atomic<std::uint32_t> g_changes{0};  // counts moves; waiting threads sleep on it
constinit std::atomic<std::uint64_t> g_wanted[kMostFaultEvents] = {};
constinit Action g_before = {};  // what ours has replaced

constinit Action g_before_init = {}, g_after_init = {};  // of SIGSEGV, around MPI_Init

struct Retry {
  std::uint64_t address, instruction;
  std::uint32_t changes;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Retry t_retry = {};

// ---- the handler ----

void pass_on(int signal, siginfo_t* info, void* context) {
  const bool is_fault = info->si_code > 0;
  if (detail::is_handler(g_before)) {
    const Action action = g_before;
    if ((action.flags & SA_RESETHAND) != 0) g_before = {};
    std::uint64_t mask = action.mask | ((action.flags & SA_NODEFER) != 0 ? 0 : detail::bit_of(SIGSEGV));
    (void)call(SYS_rt_sigprocmask, SIG_BLOCK, number_of(&mask), 0, detail::kMaskBytes);
    return action.handler(signal, info, context);  // the return from ours restores the mask
  }
  if (!is_fault && detail::is_ignored(g_before)) return;
  // A fault comes again, and the kernel ends the process for it.
  (void)action_set(SIGSEGV, {});
  if (!is_fault) (void)call(SYS_tgkill, call(SYS_getpid), call(SYS_gettid), SIGSEGV);
}

void want(std::uint64_t address) {
  for (const auto& each : g_wanted)
    if (each.load(std::memory_order_relaxed) == address) return;
  for (auto& each : g_wanted) {
    std::uint64_t none = 0;
    if (!each.compare_exchange_strong(none, address)) continue;
    const std::uint64_t one = 1;
    (void)call(SYS_write, g_fd, number_of(&one), sizeof one);
    return;
  }
}

// False: it is no fault of a guarded page.
bool wait_for(std::uint64_t address, std::uint64_t instruction) {
  constexpr long kNapNs = 10'000'000;
  const auto is_away = g_is_away.load(std::memory_order_acquire);
  if (is_away == nullptr) return false;
  // Before the question: a move after it ends the sleep.
  const std::uint32_t changes = g_changes.load(std::memory_order_acquire);
  if (is_away(g_context.load(std::memory_order_relaxed), address)) {
    t_retry = {};
    want(address);
    const timespec time{0, kNapNs};
    (void)call(SYS_futex, number_of(&g_changes), FUTEX_WAIT_PRIVATE, changes, number_of(&time));
    return true;
  }
  if (t_retry.address == address && t_retry.instruction == instruction && t_retry.changes == changes) return false;
  t_retry = {address, instruction, changes};
  return true;
}

void on_sigsegv(int signal, siginfo_t* info, void* context) {
  const ErrnoKept kept;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto instruction =
      static_cast<std::uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  if (info->si_code > 0 && wait_for(address, instruction)) return;
  pass_on(signal, info, context);
}

bool is_ours(const Action& action) { return action.handler == on_sigsegv; }

// ---- what a program must be ----

Action action_now() {
  Action now{};
  (void)action_get(SIGSEGV, &now);
  return now;
}

bool is_mpis(const Action& action) {
  return !detail::is_handler(g_before_init) && action.handler == g_after_init.handler;
}

int check_process() {
  bool blocks = false;
  if (!is_ours(action_now())) return EALREADY;
  if (!is_only_thread()) return ETOOMANYREFS;
  if (detail::check_mask(SIGSEGV, &blocks) != 0 || blocks || detail::a_handler_blocks(SIGSEGV)) return EDEADLK;
  return 0;
}

// What the process has locked and pinned, in KiB. -1: not known.
struct Held {
  long locked = -1, pinned = -1;
};
long number_behind(const char* text, const char* name) {
  const char* const at = std::strstr(text, name);
  return at != nullptr ? std::strtol(at + std::strlen(name), nullptr, 10) : -1;
}
Held held_memory() {
  char text[2048];
  read_through("/proc/self/status", text, sizeof text);
  return {number_behind(text, "VmLck:"), number_behind(text, "VmPin:")};
}
// Moving it would count it as locked twice. The kernel does not make locked pages cold.
bool is_locked(const Faults& faults, char* at) {
  return call(SYS_madvise, number_of(at), static_cast<long>(faults.page_bytes), MADV_COLD) == -EINVAL;
}

// ---- moving ----

// Whether the range lies in several mappings. A range that grows must lie in one. It grows only at
// the end of its mapping, and is cut again at once.
bool spans_mappings(char* at, std::size_t bytes, std::size_t page) {
  const auto length = static_cast<long>(bytes), more = static_cast<long>(bytes + page);
  const long result = call(SYS_mremap, number_of(at), length, more, 0, 0);
  if (result == number_of(at)) (void)call(SYS_munmap, number_of(at + bytes), static_cast<long>(page));
  return result == -EFAULT;
}

// A kernel may unmap the target before it finds that it cannot move. Nobody else may get that
// place.
void reserve_again(char* at, std::size_t bytes) {
  const long arguments[6] = {number_of(at),
                             static_cast<long>(bytes),
                             PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                             -1,
                             0};
  (void)call_through(SYS_mmap, arguments);
}

// Whether it may be written. The kernel adds 0 to a word.
bool is_writable(const char* at) {
  constexpr long kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  const long arguments[6] = {
      number_of(&g_changes), FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, number_of(at), kAddNothing};
  return call_through(SYS_futex, arguments) != -EFAULT;
}

int remap_once(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved, bool asks) {
  constexpr long kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (const int error = fault::strike("faults_move")) return error;
  if (spans_mappings(from, bytes, faults.page_bytes)) return EFAULT;
  if (!is_writable(from) || (asks && is_locked(faults, from))) return EINVAL;
  const auto length = static_cast<long>(bytes);
  const long result = call(SYS_mremap, number_of(from), length, length, kFlags, number_of(to));
  if (result == number_of(to)) {
    *moved += bytes;
    return 0;
  }
  reserve_again(to, bytes);
  return static_cast<int>(-result);
}

// EAGAIN is no event here: too much would be locked. EFAULT: there is no memory.
int remap(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved, bool asks = false) {
  const int error = advance(bytes, moved, [&](std::size_t at, std::size_t left) {
    return halving(faults, EFAULT, &left,
                   [&](std::size_t part) { return remap_once(faults, to + at, from + at, part, moved, asks); });
  });
  return error == EAGAIN || error == EFAULT ? EINVAL : error;
}

void tell_change() {
  g_changes.fetch_add(1, std::memory_order_acq_rel);
  (void)call(SYS_futex, number_of(&g_changes), FUTEX_WAKE_PRIVATE, INT_MAX);
}

// The range has no pages any more: this changes nothing, but the kernel does it only to private
// memory that is no file's.
int check_anonymous(Pages pages) {
  return static_cast<int>(-call(SYS_madvise, number_of(pages.at), static_cast<long>(pages.bytes), MADV_FREE));
}

int take_rights(Pages pages) {
  if (const int error = fault::strike("faults_guard")) return error;
  return static_cast<int>(-call(SYS_mprotect, number_of(pages.at), static_cast<long>(pages.bytes), PROT_NONE));
}

}  // namespace

void signals_before_init() { g_before_init = action_now(); }
void signals_after_init() { g_after_init = action_now(); }

int signal_open(const FaultOwner& owner, int* fd) {
  Action before{};
  if (const int error = fault::strike("signal_open")) return error;
  if (const int error = action_get(SIGSEGV, &before)) return error;
  if (detail::is_handler(before) && !is_mpis(before)) return EALREADY;
  const int made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) return errno;
  g_fd = made;
  g_before = before;
  g_context.store(owner.context, std::memory_order_relaxed);
  g_is_away.store(owner.is_away, std::memory_order_release);
  // On another stack, if the handler before it would run there.
  const unsigned long flags = SA_SIGINFO | SA_NODEFER | detail::kRestorer | (before.flags & SA_ONSTACK);
  int error = fault::strike("signal_open.action");
  if (error == 0) error = action_set(SIGSEGV, {on_sigsegv, flags, stretto_calls_return, 0});
  if (error == 0) {
    *fd = made;
    return 0;
  }
  g_is_away.store(nullptr, std::memory_order_release);
  close(made);
  return error;
}

void signal_close() {
  Action action{};
  if (action_get(SIGSEGV, &action) == 0 && is_ours(action)) (void)action_set(SIGSEGV, g_before);
  g_is_away.store(nullptr, std::memory_order_release);
  g_fd = -1;
}

int signal_guard(const Faults& faults, Pages pages, Pages spare) {
  if (const int error = check_process()) return error;
  // Whoever holds a pin could write there while data is still to come, and nothing tells which
  // memory it is.
  const Held held = held_memory();
  if (held.pinned != 0) return EBUSY;
  std::size_t moved = 0;
  int error = remap(faults, spare.at, pages.at, pages.bytes, &moved, held.locked != 0);
  if (error == 0) error = check_anonymous(pages);
  if (error == 0) error = take_rights(pages);
  tell_change();
  if (error == 0) return 0;
  std::size_t back = 0;
  return twice([&] { return remap(faults, pages.at, spare.at, moved, &back); }) == 0 ? error : ENOTRECOVERABLE;
}

int signal_move_in(const Faults& faults, char* to, char* from, std::size_t bytes, std::size_t* moved) {
  const int error = remap(faults, to, from, bytes, moved);
  tell_change();
  return error;
}

int signal_next(int fd, FaultEvent (&events)[kMostFaultEvents], int* count) {
  std::uint64_t ignored = 0;
  (void)read(fd, &ignored, sizeof ignored);
  *count = 0;
  for (auto& each : g_wanted) {
    const std::uint64_t address = each.exchange(0);
    if (address == 0) continue;
    FaultEvent& event = events[(*count)++];
    event = {};
    event.kind = FaultEvent::Kind::fault;
    event.address = address;
  }
  return *count != 0 ? 0 : EAGAIN;
}

#else

void signals_before_init() {}
void signals_after_init() {}
int signal_open(const FaultOwner&, int*) { return ENOTSUP; }
void signal_close() {}
int signal_guard(const Faults&, Pages, Pages) { return ENOTSUP; }
int signal_move_in(const Faults&, char*, char*, std::size_t, std::size_t*) { return ENOTSUP; }
int signal_next(int, FaultEvent (&)[kMostFaultEvents], int*) { return EAGAIN; }

#endif

}  // namespace stretto::sys
