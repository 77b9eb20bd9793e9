// SPDX-License-Identifier: BSD-3-Clause
// Functions for benchmarks, tests and tools, which find them by dlsym. No header is needed.
#include "mpi/host/entry.hpp"

using namespace stretto;
using namespace stretto::mpi;

// "0.2.0"
STRETTO_EXPORT const char* stretto_version() { return STRETTO_VERSION; }

// The path of this thread's last collective: "inline", "cico", "host" and so on (kPathNames). Calls
// that never came to Stretto count as "host".
STRETTO_EXPORT const char* stretto_last_path() {
  const bool serving = g_mode.load(std::memory_order_relaxed) == Mode::serving;
  return serving && t_thread.last_path != nullptr ? t_thread.last_path : kPathNames[static_cast<int>(Path::host)];
}

// Whether Stretto looks at collectives: 1 after the first MPI call, unless it stands aside.
STRETTO_EXPORT int stretto_active() { return g_mode.load(std::memory_order_relaxed) == Mode::serving; }
