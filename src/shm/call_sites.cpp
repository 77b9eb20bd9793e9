// SPDX-License-Identifier: BSD-3-Clause
#include "shm/call_sites.hpp"

#include <cstdio>

namespace stretto::shm {

thread_local constinit ThisCall t_call = {};

bool is_binding(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  const char* const name = slash != nullptr ? slash + 1 : path;
  return std::strncmp(name, "libmpi", 6) == 0 || std::strncmp(name, "libpmpi", 7) == 0 ||
         std::strstr(path, "/mpi4py/") != nullptr;
}

// The address is one within the call instruction: the next instruction may belong to another line.
CallSite::CallSite(const CallSites& sites, std::uint64_t number, std::uint64_t caller) {
  SourceLine line;
  if (sites.lines.read(number, &line)) {
    if (line.text[0] != 0) {
      std::snprintf(text, sizeof text, "%s", line.text);
      return;
    }
    if (line.caller != 0) caller = line.caller;
  }
  name(sites.modules, caller);
}

void CallSite::name(const Modules& modules, std::uint64_t caller) {
  const Module* const module = caller != 0 ? modules.find(caller - 1) : nullptr;
  if (module == nullptr) return;
  char path[Module::kPathBytes];
  std::memcpy(path, module->path, sizeof path);
  path[sizeof path - 1] = 0;  // an observer trusts nothing in a segment
  if (is_binding(path)) return;
  std::snprintf(text, sizeof text, "%s+0x%llx", path, static_cast<unsigned long long>(caller - 1 - module->base));
}

}  // namespace stretto::shm
