// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/discover.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

#include "mpi/host.hpp"

namespace stretto::mpi {
namespace {

// A function that every MPI library since MPI 3 has, no tool wraps, and we do not export.
constexpr const char* kMark = "PMPI_Get_library_version";

const char* base_name(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool starts_with(const char* text, const char* start) { return std::strncmp(text, start, std::strlen(start)) == 0; }

// libmpi.so.12, libmpich.so.12, libmpi_cray.so.12, libmpi_gnu_91.so ... Language bindings match too: see candidate().
bool looks_like_mpi(const char* name) { return starts_with(name, "libmpi") || starts_with(name, "libpmpi"); }

// The library that `path` names or depends on (libmpifort leads to its libmpi).
HostLibrary candidate(const char* path) {
  void* const handle = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return {};
  const void* const mark = dlsym(handle, kMark);
  const char* name = nullptr;
  const std::uintptr_t base = mark != nullptr ? object_of(mark, &name) : 0;
  if (base == 0) {
    dlclose(handle);
    return {};
  }
  Dl_info info;
  if (dladdr(mark, &info) != 0 && std::strcmp(base_name(info.dli_fname), base_name(path)) != 0) {
    if (void* const own = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)) {
      dlclose(handle);
      return {own, base, starts_with(name, "libmpi_abi")};
    }
  }
  return {handle, base, starts_with(name, "libmpi_abi")};
}

// Names are copied out: dlopen within the walk would wait for the lock that the walk holds.
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

HostLibrary find_host() {
  static constinit Names names = {};  // 16 KiB: too much for a small thread's stack; the caller holds the lock
  names.count = 0;
  dl_iterate_phdr(collect, &names);
  HostLibrary found;
  for (int i = 0; i < names.count; i++) {
    const HostLibrary library = candidate(names.path[i]);
    if (library.handle == nullptr) continue;
    if (library.standard_abi) return library;  // the program's calls are meant for it
    if (found.handle == nullptr) found = library;
  }
  if (found.handle != nullptr) return found;
  // An MPI by another name that is linked in the ordinary way.
  const char* name = nullptr;
  if (const void* const mark = dlsym(RTLD_DEFAULT, kMark)) {
    Dl_info info;
    const std::uintptr_t base = object_of(mark, &name);
    if (base != 0 && dladdr(mark, &info) != 0) found = {dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY), base, false};
  }
  return found;
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
