// SPDX-License-Identifier: BSD-3-Clause
// The first call: who is the host, is its ABI ours, are there tools; and afterwards, who is calling.
#include "mpi/edge.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "mpi/discover.hpp"
#include "mpi/host.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {

constinit std::atomic<Mode> g_mode{Mode::unresolved};
constinit std::atomic<bool> g_tools{false};
constinit void* g_host_entries[kEntries] = {};
constinit void* g_tool_entries[kEntries] = {};
constinit Host g_host = {};
thread_local constinit Thread t_thread STRETTO_TLS = {};

namespace {

constinit HostLibrary g_library;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

void find_entries() {
  const char* name = nullptr;
  for (int e = 0; e < kEntries; e++) {
    g_host_entries[e] = dlsym(g_library.handle, kEntryFacts[e].pmpi_name);
    void* const next = dlsym(RTLD_NEXT, kEntryFacts[e].name);
    if (next == nullptr || object_of(next, &name) == g_library.base || is_in_mpi_library(next)) continue;
    g_tool_entries[e] = next;
    g_tools.store(true, std::memory_order_relaxed);
  }
}

bool fill_host() {
  bool complete = true;
  g_host.library = g_library.handle;
#define STRETTO_FIND(function) \
  g_host.function = reinterpret_cast<decltype(g_host.function)>(dlsym(g_library.handle, "PMPI_" #function));
#define STRETTO_REQUIRE(function) STRETTO_FIND(function) complete = complete && g_host.function != nullptr;
  STRETTO_HOST_REQUIRED(STRETTO_REQUIRE)
  STRETTO_HOST_OPTIONAL(STRETTO_FIND)
#undef STRETTO_REQUIRE
#undef STRETTO_FIND
  return vendor::fill_constants(g_host.constants) && complete;
}

// One process of a job speaks for all. It stands aside alone: ranks of one job have one kind of MPI.
void say_once(const char* version) {
  if (vendor::launcher_rank() > 0) return;
  const int length = static_cast<int>(std::strcspn(version, ",\n"));
  log_line(LogLevel::warn, "standing aside: libstretto-%s.so is for %s, but this program uses %s%.*s", vendor::kAbi,
           vendor::kFamily, g_library.standard_abi ? "the MPI 5 ABI library of " : "", length, version);
}

// Whether the host speaks our ABI and has all we need.
bool is_ours() {
  const auto get_version = reinterpret_cast<int (*)(char*, int*)>(dlsym(g_library.handle, "PMPI_Get_library_version"));
  static constinit char version[8192] = {};  // MPICH needs up to 8 KiB
  int length = 0;
  if (get_version == nullptr || get_version(version, &length) != 0) return false;
  if (g_library.standard_abi || !vendor::recognises(version)) {
    say_once(version);
    return false;
  }
  if (fill_host()) return true;
  if (vendor::launcher_rank() <= 0) log_line(LogLevel::warn, "standing aside: this MPI lacks functions that Stretto needs");
  return false;
}

}  // namespace

// Data of a linked library may have moved into the program (copy relocation): then the library itself uses that copy, the
// first in the global scope. A library that was loaded locally is in no global scope.
void* host_symbol(const char* name) {
  void* const global = dlsym(RTLD_DEFAULT, name);
  return global != nullptr ? global : dlsym(g_library.handle, name);
}

void resolve() {
  pthread_mutex_lock(&g_lock);
  if (g_mode.load(std::memory_order_relaxed) == Mode::unresolved) {
    g_library = find_host();
    if (g_library.handle == nullptr) {
      log_line(LogLevel::error, "an MPI function was called, but no MPI library is loaded");
      log_drain();
      std::abort();  // there is nothing to forward to, and no communicator whose error handler could be asked
    }
    find_entries();
    const bool serve = is_ours() && lifecycle_begin();
    g_mode.store(serve ? Mode::serving : Mode::aside, std::memory_order_release);  // pairs with the loads of may_serve
  }
  pthread_mutex_unlock(&g_lock);
}

bool judge_caller(const void* address) {
  const char* name = nullptr;
  const std::uintptr_t base = object_of(address, &name);
  const bool inside = base != 0 && (base == g_library.base || vendor::is_component(name));
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) >> kPageShift;
  t_thread.callers[page % (sizeof t_thread.callers / sizeof *t_thread.callers)] = {page, inside};
  return inside;
}

void entry_missing(Entry entry) {
  log_line(LogLevel::error, "%s was called, but this MPI does not have it", kEntryFacts[static_cast<int>(entry)].name);
  log_drain();
  std::abort();
}

}  // namespace stretto::mpi
