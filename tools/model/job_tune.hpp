// SPDX-License-Identifier: BSD-3-Clause
// The collectives of a recorded job, and what the schedules of each would take.
#pragma once
#include <string>
#include <vector>

namespace stretto::modelling {

// `job tune --costs FILE [where ranks are] -- RECORDING...` prints as JSON:
//   calls      op, ranks, nodes, bytes (of a vector, or a part), whole (as rules count), how many,
//              and the fastest candidates with their times in ns
//   in_node    calls within a node, of which a profile knows nothing
//   left       calls of which not all ranks know the lengths, or whose operation does not commute
void tune_job(const std::vector<std::string>& words);

}  // namespace stretto::modelling
