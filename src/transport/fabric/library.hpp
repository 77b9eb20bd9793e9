// SPDX-License-Identifier: BSD-3-Clause
// The libfabric of this process: the one that the MPI has loaded, or the system's. Nothing needs
// it.
#pragma once
#include "transport/fabric/libfabric_abi.hpp"

namespace stretto::transport::ofi {

struct Library {
  int (*getinfo)(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const Info* hints,
                 Info** found);
  Info* (*dupinfo)(const Info*);
  void (*freeinfo)(Info*);
  int (*fabric)(FabricAttr*, FabricFid** made, void* context);
  std::uint32_t version;  // as version()
  bool is_shared;         // others had loaded it
  char path[512];         // "": unknown
};

// Looks for it at the first call. Any thread may call. Null: there is none, *why says so.
const Library* library(const char** why);

// A memory monitor watches all memory of a process for those who register the program's memory, and
// two of them disturb each other. Stretto registers only memory of its own. So a libfabric of our
// own begins without one while this object is there: it reads this at its first getinfo().
class WithoutMonitor {
 public:
  explicit WithoutMonitor(const Library& library);
  ~WithoutMonitor();
  WithoutMonitor(const WithoutMonitor&) = delete;
  WithoutMonitor& operator=(const WithoutMonitor&) = delete;

 private:
  bool is_set_ = false;
};

}  // namespace stretto::transport::ofi
