// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/pmix_library.hpp"

#include <dlfcn.h>
#include <pthread.h>

namespace stretto::pmix {
namespace {

constinit PmixLibrary g_library{};
constinit bool g_found = false;
pthread_once_t g_once = PTHREAD_ONCE_INIT;

template <class Function>
bool find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// MPI libraries load their PMIx locally, out of reach of RTLD_NEXT. A program linked with PMIx may
// have it under another name, which RTLD_NEXT finds.
void search() {
  void* handle = dlopen("libpmix.so.2", RTLD_NOLOAD | RTLD_LAZY);
  if (!handle) handle = RTLD_NEXT;
  g_found = find(handle, "PMIx_Init", &g_library.init) && find(handle, "PMIx_Finalize", &g_library.finalize) &&
            find(handle, "PMIx_Get", &g_library.get) && find(handle, "PMIx_Get_nb", &g_library.get_nb) &&
            find(handle, "PMIx_Fence", &g_library.fence) && find(handle, "PMIx_Fence_nb", &g_library.fence_nb);
}

}  // namespace

thread_local int Inside::depth_ = 0;

const PmixLibrary* library() {
  pthread_once(&g_once, search);
  return g_found ? &g_library : nullptr;
}

}  // namespace stretto::pmix
