// SPDX-License-Identifier: BSD-3-Clause
// The program's windows for one-sided operations. This file does not include mpi.h.
//
// While the program has a window, every call that Stretto serves drives the host at its end, as the
// host's own collectives do. Some programs expect that a Barrier makes earlier one-sided operations
// visible. A window counts before it is made, because a peer may be first to have and to use it.
#pragma once
#include <atomic>

namespace stretto::mpi {

inline constinit std::atomic<int> g_windows{0};  // how many the program has
inline void window_made() { g_windows.fetch_add(1, std::memory_order_relaxed); }
inline void window_gone() { g_windows.fetch_sub(1, std::memory_order_relaxed); }
template <class Make>
int making_window(const Make& make) {
  window_made();
  const int code = make();
  if (code != 0) window_gone();  // MPI_SUCCESS is 0 everywhere
  return code;
}
template <class Free>
int freeing_window(const Free& free) {
  const int code = free();
  if (code == 0) window_gone();
  return code;
}

}  // namespace stretto::mpi
