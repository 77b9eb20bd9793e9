// SPDX-License-Identifier: BSD-3-Clause
// The stack of a thread as text.
#pragma once
#include "shm/stack_note.hpp"

namespace stretto::observe {

// Stops the thread for some microseconds to milliseconds. `own`: it is a thread of this process.
// Writes the frames, or why there are none.
void stack_of(int pid, int thread, bool own, shm::StackText* stack);

}  // namespace stretto::observe
