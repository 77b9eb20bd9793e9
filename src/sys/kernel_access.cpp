// SPDX-License-Identifier: BSD-3-Clause
#include "sys/kernel_access.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "sys/call_layouts.hpp"
#include "sys/sys.hpp"
#include "sys/thread.hpp"

namespace stretto::sys {
namespace {

long number_of(const void* at) { return static_cast<long>(reinterpret_cast<std::uintptr_t>(at)); }

// ---- threads ----

constexpr const char* kThreads = "/proc/self/task";

struct ThreadIds {
  static constexpr int kMost = 64;
  long id[kMost];
  int count = 0;  // more than kMost: the others are not known
  [[nodiscard]] bool has(long wanted) const {
    const long* const end = id + std::min(count, kMost);
    return std::find(id, end, wanted) != end;
  }
  void add(long made) {
    if (count < kMost) id[count] = made;
    ++count;
  }
};
constinit ThreadIds g_before_init = {}, g_of_mpi = {};

struct DirectoryEntry {  // of getdents64
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short bytes;
  unsigned char type;
  char name[];
};

// Calls `each(id)`. False: not known.
template <class Each>
bool each_thread(const Each& each) {
  alignas(DirectoryEntry) char entries[2048];
  const long folder = call_through(SYS_openat, {AT_FDCWD, number_of(kThreads), O_RDONLY | O_DIRECTORY | O_CLOEXEC});
  long got = folder;
  while (got >= 0) {
    got = call_through(SYS_getdents64, {folder, number_of(entries), sizeof entries});
    if (got <= 0) break;
    for (long at = 0; at < got; at += reinterpret_cast<const DirectoryEntry*>(entries + at)->bytes)
      if (const long id = std::atol(reinterpret_cast<const DirectoryEntry*>(entries + at)->name)) each(id);
  }
  if (folder >= 0) (void)call_through(SYS_close, {folder});
  return got == 0;
}

// Of the whole process.
int count_threads() {
  struct stat found{};
  constexpr int kLinks = 2;  // of the directory itself
  const long result = call_through(SYS_newfstatat, {AT_FDCWD, number_of(kThreads), number_of(&found), 0});
  return result == 0 ? static_cast<int>(found.st_nlink) - kLinks : INT_MAX;
}

// ---- handlers ----

constexpr int kSignals = 64;
constinit const void* g_handlers[kSignals] = {};  // before MPI_Init; after it those that it has installed

// Calls `each(signal, handler)`. Null: there is none.
template <class Each>
void each_handler(const Each& each) {
  for (int signal = 1; signal <= kSignals; ++signal) {
    struct {
      const void* handler;
      unsigned long rest[3];
    } action = {};
    (void)call_through(SYS_rt_sigaction, {signal, 0, number_of(&action), 8});
    each(signal, number_of(action.handler) > 1 ? action.handler : nullptr);  // neither SIG_DFL nor SIG_IGN
  }
}

// UCX installs handlers when it is loaded, before main. They tell where the process is.
bool is_of_ucx(const void* handler) {
  Dl_info found{};
  if (dladdr(handler, &found) == 0 || found.dli_fname == nullptr) return false;
  const char* const slash = std::strrchr(found.dli_fname, '/');
  return std::strncmp(slash != nullptr ? slash + 1 : found.dli_fname, "libucs.", 7) == 0;
}

// ---- stacks ----

struct Span {
  std::uint64_t begin = 0, end = 0;
  [[nodiscard]] bool meets(const Span& other) const { return begin < other.end && other.begin < end; }
};

[[gnu::tls_model("initial-exec")]] constinit thread_local Span t_stack = {};

// Of this thread. Empty: not known. glibc reads a file for the main thread's.
Span own_stack() {
  Span& known = t_stack;
  pthread_attr_t attributes;
  if (known.end != 0 || pthread_getattr_np(pthread_self(), &attributes) != 0) return known;
  void* at = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &at, &bytes) == 0) {
    known.begin = reinterpret_cast<std::uintptr_t>(at);
    known.end = known.begin + bytes;
  }
  pthread_attr_destroy(&attributes);
  return known;
}

}  // namespace

void access_before_init() {
  each_handler([](int signal, const void* handler) { g_handlers[signal - 1] = handler; });
  g_before_init.count = 0;
  (void)each_thread([](long id) { g_before_init.add(id); });
}

// Threads that could not be noted before count as the program's.
void access_after_init() {
  each_handler([](int signal, const void* handler) {
    const void*& before = g_handlers[signal - 1];
    before = before == handler ? nullptr : handler;
  });
  g_of_mpi.count = 0;
  if (g_before_init.count == 0 || g_before_init.count > ThreadIds::kMost) return;
  (void)each_thread([](long id) {
    if (!g_before_init.has(id)) g_of_mpi.add(id);
  });
}

std::uint64_t handled_signals() {
  constexpr int kOfLibc[] = {32, 33};
  constexpr int kFatal[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGQUIT, SIGSYS, SIGXCPU, SIGXFSZ};
  std::uint64_t handled = 0;
  each_handler([&](int signal, const void* handler) {
    const auto is_in = [&](const auto& some) {
      return std::find(std::begin(some), std::end(some), signal) != std::end(some);
    };
    if (handler != nullptr && handler != g_handlers[signal - 1] && !is_in(kFatal) && !is_in(kOfLibc) &&
        !is_of_ucx(handler))
      handled |= std::uint64_t{1} << (signal - 1);
  });
  return handled;
}

bool is_only_thread() {
  if (count_threads() - g_own_threads.load() <= 1) return true;
  int others = 0;
  const bool known = each_thread([&](long id) { others += g_of_mpi.has(id) ? 0 : 1; });
  return known && others - g_own_threads.load() <= 1;
}

bool has_threads_of_mpi() { return count_threads() - g_own_threads.load() > 1; }

bool runs_handlers_elsewhere(std::uint64_t signals) {
  constexpr const char* kBlocked = "SigBlk:";
  const long own = call_through(SYS_gettid, {});
  bool may_run = false;
  const bool known = each_thread([&](long id) {
    char path[64], text[2048];
    std::snprintf(path, sizeof path, "%s/%ld/status", kThreads, id);
    read_through(path, text, sizeof text);
    const char* const at = std::strstr(text, kBlocked);
    const std::uint64_t blocked = at != nullptr ? std::strtoull(at + std::strlen(kBlocked), nullptr, 16) : 0;
    may_run = may_run || (id != own && (signals & ~blocked) != 0);
  });
  return !known || may_run;
}

bool has_children() {
  siginfo_t ignored;
  const long result =
      call_through(SYS_waitid, {P_ALL, 0, number_of(&ignored), WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL});
  return result != -ECHILD;
}

bool is_stack(Pages pages) {
  const Span own = own_stack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.at);
  const Span asked{begin, begin + pages.bytes};
  stack_t other{};
  if (here < own.begin || here >= own.end || asked.meets(own)) return true;
  if (call_through(SYS_sigaltstack, {0, number_of(&other)}) != 0) return true;
  const auto at = reinterpret_cast<std::uintptr_t>(other.ss_sp);
  return (other.ss_flags & SS_DISABLE) == 0 && asked.meets({at, at + other.ss_size});
}

}  // namespace stretto::sys
