// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/host/call_sites.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "mpi/host/python_line.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {

constinit shm::Modules g_call_modules = {};

namespace {

constexpr std::size_t kPathBytes = 4096;

constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the list's writing
constinit std::atomic<bool (*)()> g_follow{nullptr};
// The linker's names of the files in the list. They tell whether a file is still the same.
constinit char g_names[shm::Modules::kMost][shm::Module::kPathBytes] = {};

// The linker's name of the program is empty.
void full_path(const char* name, char (&path)[kPathBytes]) {
  if (*name == 0) {
    sys::program_path(path, sizeof path);
  } else if (sys::real_path(name, path, sizeof path) != 0) {
    std::strncpy(path, name, sizeof path - 1);
    path[sizeof path - 1] = 0;
  }
}

bool same(const shm::Module& module, const LoadedObject& object) {
  const char* const name = g_names[&module - g_call_modules.of];
  return module.base == object.base && std::strncmp(name, object.name, sizeof g_names[0] - 1) == 0;
}

void add(const LoadedObject& object) {
  char path[kPathBytes];
  full_path(object.name, path);
  pthread_mutex_lock(&g_lock);
  const shm::Module* const there = g_call_modules.find(object.begin);
  if (there == nullptr || !same(*there, object)) {
    const std::uint64_t at = g_call_modules.count.load_relaxed();
    if (at < shm::Modules::kMost) std::strncpy(g_names[at], object.name, sizeof g_names[at] - 1);
    (void)g_call_modules.add(object.begin, object.end, object.base, path);
  }
  pthread_mutex_unlock(&g_lock);
}

bool tell_peers() {
  bool (*const follow)() = g_follow.load(std::memory_order_acquire);  // pairs with call_sites_followed_by
  return follow == nullptr || follow();
}

struct Search {
  std::uintptr_t address;
  LoadedObject found;
};

int compare_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    begin = std::min(begin, info->dlpi_addr + header.p_vaddr);
    end = std::max(end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
  }
  if (search.address < begin || search.address >= end) return 0;
  search.found = {begin, end, info->dlpi_addr, info->dlpi_name != nullptr ? info->dlpi_name : ""};
  return 1;
}

// The object that has this address. dladdr would take the lock that dlopen holds while it runs
// constructors, which may wait in MPI calls.
LoadedObject object_at(std::uintptr_t address) {
  Search search = {address, {}};
  dl_iterate_phdr(compare_object, &search);
  return search.found;
}

// ---- Bindings ----

using Backtrace = _Unwind_Reason_Code (*)(_Unwind_Trace_Fn, void*);
using GetIp = _Unwind_Ptr (*)(_Unwind_Context*);
constinit std::atomic<Backtrace> g_backtrace{nullptr};
constinit std::atomic<GetIp> g_ip{nullptr};

// libc has no unwinder. Its own backtrace() loads this library, too. Fortran programs have it.
void find_unwinder() {
  if (g_backtrace.load(std::memory_order_relaxed) != nullptr) return;
  void* const library = dlopen("libgcc_s.so.1", RTLD_LAZY);  // it stays
  if (library == nullptr) return;
  g_ip.store(reinterpret_cast<GetIp>(dlsym(library, "_Unwind_GetIP")), std::memory_order_relaxed);
  // Pairs with behind_binding.
  g_backtrace.store(reinterpret_cast<Backtrace>(dlsym(library, "_Unwind_Backtrace")), std::memory_order_release);
}

struct Walk {
  GetIp ip;
  std::uintptr_t caller;
  bool passed = false;  // the walk has come to the call
  unsigned frames = 0;
  std::uintptr_t found = 0;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  constexpr unsigned kMostFrames = 64;
  Walk& walk = *static_cast<Walk*>(data);
  const std::uintptr_t address = walk.ip(context);
  if (address == 0 || ++walk.frames > kMostFrames) return _URC_END_OF_STACK;
  walk.passed = walk.passed || address == walk.caller;
  if (!walk.passed) return _URC_NO_REASON;
  const LoadedObject object = object_at(address - 1);
  if (object.name == nullptr) return _URC_END_OF_STACK;
  if (shm::is_binding(object.name) || caller_range(address - 1).inside) return _URC_NO_REASON;
  walk.found = address;
  return _URC_END_OF_STACK;
}

// Where the program called the binding. 0: it cannot be found.
std::uintptr_t behind_binding(std::uintptr_t caller) {
  const Backtrace backtrace = g_backtrace.load(std::memory_order_acquire);
  Walk walk = {g_ip.load(std::memory_order_relaxed), caller};
  if (backtrace == nullptr || walk.ip == nullptr) return 0;
  (void)backtrace(visit, &walk);
  return walk.found;
}

// What a thread that waits may not look for: it must not wait for the dynamic linker's lock.
void prepare(const char* name) {
  if (shm::is_binding(name)) find_unwinder();
  python_find();
}

}  // namespace

bool call_site_seen(std::uintptr_t caller, const CallerRange& range, const LoadedObject& object) {
  const shm::Module* const module = g_call_modules.find(caller - 1);
  const bool lasts = range.bytes != 0;
  if (module != nullptr && (lasts || object.name == nullptr || same(*module, object))) return true;
  if (module == nullptr && g_call_modules.count.load_relaxed() == shm::Modules::kMost) return true;  // no room
  const LoadedObject there = lasts ? object_at(caller - 1) : object;
  if (there.name == nullptr) return true;
  add(there);
  prepare(there.name);
  return tell_peers();
}

void call_sites_followed_by(bool (*follow)()) { g_follow.store(follow, std::memory_order_release); }

bool call_site_locate(std::uint64_t caller, shm::SourceLine* line) {
  const shm::Module* const module = caller != 0 ? g_call_modules.find(caller - 1) : nullptr;
  if (module != nullptr && shm::is_binding(module->path)) {
    line->caller = behind_binding(caller);
    const bool known = line->caller == 0 || g_call_modules.find(line->caller - 1) != nullptr;
    const LoadedObject object = known ? LoadedObject{} : object_at(line->caller - 1);
    if (object.name != nullptr) {
      add(object);
      (void)tell_peers();
    }
  }
  return python_line(line->text) || line->caller != 0;
}

}  // namespace stretto::mpi
