// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/host/discover.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "mpi/host/host.hpp"

namespace stretto::mpi {

const char* base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

namespace {

// Every MPI library since MPI 3 has this function. No tool wraps it. Stretto does not export it.
constexpr const char* kMark = "PMPI_Get_library_version";

bool starts_with(const char* text, const char* start) { return std::strncmp(text, start, std::strlen(start)) == 0; }

}  // namespace

bool looks_like_mpi(const char* name) { return starts_with(name, "libmpi") || starts_with(name, "libpmpi"); }

namespace {

bool is_our_own(const void* address) {
  static constinit const char here = 0;
  const char* name = nullptr;
  return object_of(address, &name) == object_of(&here, &name);
}

// The symbol, if it is not ours. Null if there is none.
void* find_beside_us(void* scope, const char* symbol) {
  void* const found = dlsym(scope, symbol);
  return found != nullptr && !is_our_own(found) ? found : nullptr;
}

// A handle of the object that contains `caller`. Its scope is that object and the libraries that it
// needs. Null for the program, whose scope is the global one.
void* scope_of(const void* caller) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(caller, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr ||
      *map->l_name == 0)
    return nullptr;
  return dlopen(map->l_name, RTLD_NOLOAD | RTLD_LAZY);
}

HostLibrary library_of(const void* mark) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(mark, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || map == nullptr) return {};
  HostLibrary library;
  library.is_program = *map->l_name == 0;
  library.handle = dlopen(library.is_program ? nullptr : map->l_name, RTLD_NOLOAD | RTLD_LAZY);
  library.base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const char* const name = base_name(map->l_name);
  library.standard_abi = starts_with(name, "libmpi_abi") || starts_with(name, "libpmpi_abi");
  return library.handle != nullptr ? library : HostLibrary{};
}

// The MPI library that `path` names or depends on: libmpifort leads to its libmpi.
HostLibrary candidate(const char* path) {
  void* const handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return {};
  const void* const mark = dlsym(handle, kMark);
  const HostLibrary library = mark != nullptr ? library_of(mark) : HostLibrary{};
  dlclose(handle);
  return library;
}

// The walk copies names here, because dlopen within it would wait for the lock that the walk holds.
struct Names {
  static constexpr int kMost = 16;
  char path[kMost][1024];
  int count = 0;
};

int collect(dl_phdr_info* info, std::size_t, void* data) {
  auto* names = static_cast<Names*>(data);
  const char* const path = info->dlpi_name;
  if (path == nullptr || !looks_like_mpi(base_name(path)) || std::strlen(path) >= sizeof names->path[0]) return 0;
  if (names->count < Names::kMost) std::strcpy(names->path[names->count++], path);
  return 0;
}

}  // namespace

std::uintptr_t object_of(const void* address, const char** name) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fbase == nullptr) return 0;
  *name = info.dli_fname != nullptr ? base_name(info.dli_fname) : "";
  return reinterpret_cast<std::uintptr_t>(info.dli_fbase);
}

namespace {

// 16 KiB are too much for the stack of some threads. The caller's lock guards this memory.
const Names& names_like_mpi() {
  static constinit Names names = {};
  names.count = 0;
  dl_iterate_phdr(collect, &names);
  return names;
}

HostLibrary find_by_file_name() {
  const Names& names = names_like_mpi();
  HostLibrary found;
  for (int i = 0; i < names.count; ++i) {
    const HostLibrary library = candidate(names.path[i]);
    if (library.handle == nullptr) continue;
    if (library.standard_abi) return library;  // the program calls this one
    if (found.handle == nullptr) found = library;
  }
  return found;
}

}  // namespace

void* next_definition(const char* name, const void* caller) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  if (void* const global = find_beside_us(RTLD_DEFAULT, name)) return global;
  void* const scope = scope_of(caller);
  if (scope == nullptr) return nullptr;
  void* const found = find_beside_us(scope, name);
  dlclose(scope);
  return found;
}

bool has_other_mpi(const HostLibrary& host) {
  const Names& names = names_like_mpi();
  for (int i = 0; i < names.count; ++i) {
    const HostLibrary library = candidate(names.path[i]);
    if (library.handle == nullptr) continue;
    dlclose(library.handle);
    if (library.base != host.base) return true;
  }
  return false;
}

HostLibrary find_host(const void* caller) {
  if (const void* const mark = next_definition(kMark, caller)) return library_of(mark);
  if (next_definition("MPI_Init", caller) != nullptr) return {};  // an MPI without PMPI_ names, such as a stub
  return find_by_file_name();
}

bool is_in_mpi_library(const void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  void* const handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return false;
  const void* const mark = dlsym(handle, kMark);
  dlclose(handle);
  const char* name = nullptr;
  return mark != nullptr && object_of(mark, &name) == reinterpret_cast<std::uintptr_t>(info.dli_fbase);
}

}  // namespace stretto::mpi
