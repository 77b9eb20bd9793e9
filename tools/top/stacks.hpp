// SPDX-License-Identifier: BSD-3-Clause
// The stacks of processes, whether or not they run with Stretto.
#pragma once
#include <vector>

namespace stretto::top {

// Writes one JSON object: of each process its threads, of each thread its frames, the innermost
// first, or why there are none. Each thread is stopped for a moment.
int write_stacks(const std::vector<int>& pids);

}  // namespace stretto::top
