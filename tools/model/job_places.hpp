// SPDX-License-Identifier: BSD-3-Clause
// Where the ranks of a recorded job are.
#pragma once
#include <string>

#include "job_file.hpp"
#include "request.hpp"

namespace stretto::modelling {

// As --places, --network or --levels say; without them, on the hosts that they were recorded on.
topo::Placement placement_of_job(const JobFile& job, const Request& request);

// The same places, but rank 0 gets the first one, and so on. `order` is "slot": all places of a
// node before those of the next one. Or it is "node": one of each node in turn. Ends the program
// where all are on one node.
topo::Placement dealt(const topo::Placement& places, const std::string& order);

// On how many nodes these ranks are. Without levels they are on one. Without a level "node", the
// lowest level counts.
int nodes_of(const topo::Placement& places);

}  // namespace stretto::modelling
