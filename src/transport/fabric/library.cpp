// SPDX-License-Identifier: BSD-3-Clause
#include "transport/fabric/library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace stretto::transport::ofi {
namespace {

constexpr char kMonitor[] = "FI_MR_CACHE_MONITOR";

constinit Library g_library{};
constinit const char* g_why_not = nullptr;
constinit pthread_once_t g_once = PTHREAD_ONCE_INIT;

template <class Function>
bool find(void* handle, const char* name, const char* interface_version, Function* function) {
  *function = reinterpret_cast<Function>(dlvsym(handle, name, interface_version));
  return *function != nullptr;
}

// Two copies in one process would each have hooks on the program's memory. So the one that is there
// already comes first, whatever its path.
void search() {
  constexpr char kName[] = "libfabric.so.1";
  void* handle = dlopen(kName, RTLD_NOLOAD | RTLD_LAZY);
  g_library.is_shared = handle != nullptr;
  if (handle == nullptr) handle = dlopen(kName, RTLD_LAZY | RTLD_LOCAL);  // it stays
  if (handle == nullptr) {
    g_why_not = "there is no libfabric.so.1";
    return;
  }
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr)
    std::snprintf(g_library.path, sizeof g_library.path, "%s", map->l_name);
  std::uint32_t (*version)() = nullptr;
  if (find(handle, "fi_version", "FABRIC_1.0", &version)) g_library.version = version();
  const bool fine = find(handle, "fi_getinfo", "FABRIC_1.3", &g_library.getinfo) &&
                    find(handle, "fi_dupinfo", "FABRIC_1.3", &g_library.dupinfo) &&
                    find(handle, "fi_freeinfo", "FABRIC_1.3", &g_library.freeinfo) &&
                    find(handle, "fi_fabric", "FABRIC_1.1", &g_library.fabric);
  if (!fine) g_why_not = "libfabric.so.1 is older than 1.11";
}

}  // namespace

const Library* library(const char** why) {
  pthread_once(&g_once, search);
  *why = g_why_not;
  return g_why_not == nullptr ? &g_library : nullptr;
}

WithoutMonitor::WithoutMonitor(const Library& library) {
  is_set_ = !library.is_shared && std::getenv(kMonitor) == nullptr && setenv(kMonitor, "disabled", 0) == 0;
}

WithoutMonitor::~WithoutMonitor() {
  if (is_set_) unsetenv(kMonitor);
}

}  // namespace stretto::transport::ofi
