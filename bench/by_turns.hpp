// SPDX-License-Identifier: BSD-3-Clause
// For programs that call Stretto and the MPI by turns.
#pragma once
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace bench {

// The MPI's own library, whatever is preloaded in front of it.
inline void* host_library() {
  const char* name = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const char* base = std::strrchr(info->dlpi_name, '/');
        base = base != nullptr ? base + 1 : info->dlpi_name;
        if (std::strncmp(base, "libmpi.so", 9) != 0 && std::strncmp(base, "libmpich.so", 11) != 0) return 0;
        *static_cast<const char**>(found) = info->dlpi_name;
        return 1;
      },
      &name);
  void* const handle = name != nullptr ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (handle == nullptr) std::abort();
  return handle;
}

// `prefix` and `name` make the symbol.
template <class Function>
void find_function(Function& function, void* handle, const char* prefix, const char* name) {
  char symbol[64];
  std::snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (function == nullptr) std::abort();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace bench
