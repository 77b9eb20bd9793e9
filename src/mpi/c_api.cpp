// SPDX-License-Identifier: BSD-3-Clause
// What benchmarks, tests and tools may ask the loaded library (by dlsym): no header needed.
#include "mpi/entry.hpp"

using namespace stretto;
using namespace stretto::mpi;

// "0.2.0"
STRETTO_EXPORT const char* stretto_version() { return STRETTO_VERSION; }

// How this thread's last collective went: "inline", "cico", "host". Calls that never came to us count as the host's.
STRETTO_EXPORT const char* stretto_last_path() {
  const bool serving = g_mode.load(std::memory_order_relaxed) == Mode::serving;
  return serving && t_thread.last_path != nullptr ? t_thread.last_path : kPathNames[static_cast<int>(Path::host)];
}

// Whether collectives are looked at: 1 after the first MPI call, unless this process stands aside.
STRETTO_EXPORT int stretto_active() { return g_mode.load(std::memory_order_relaxed) == Mode::serving; }
