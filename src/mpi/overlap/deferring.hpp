// SPDX-License-Identifier: BSD-3-Clause
// Whether calls have returned before their data are there (STRETTO_OVERLAP). This file does not
// include mpi.h.
#pragma once
#include <atomic>

namespace stretto::mpi {

// Some call of this process has returned early, and its data may not be there yet (overlap.cpp).
inline constinit std::atomic<bool> g_deferring{false};

inline bool deferring() { return g_deferring.load(std::memory_order_relaxed); }

}  // namespace stretto::mpi
