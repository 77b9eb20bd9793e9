// SPDX-License-Identifier: BSD-3-Clause
// Recorded jobs in the formats of other tools.
#pragma once
#include <cstdio>
#include <string>

#include "job_file.hpp"

namespace stretto::modelling {

// Each returns how many calls it has made computation of, because the format has no word for them.

// JSON of Chrome's trace viewer, which Perfetto reads: a call is an event of its rank's thread.
std::uint64_t export_chrome(const JobFile& job, std::FILE* to);
// Text of the LogGOPSim family (sched/goal.hpp). Collectives are messages of a schedule.
std::uint64_t export_goal(const JobFile& job, std::FILE* to);
// SimGrid's time-independent trace: a nanosecond of computation is a flop. Collectives of parts of
// MPI_COMM_WORLD are messages of a schedule.
std::uint64_t export_ti(const JobFile& job, std::FILE* to);

// An archive of OTF2: the folder `name`, with traces.otf2 inside. Ends the program if this build
// has no OTF2, or the folder is there.
std::uint64_t export_otf2(const JobFile& job, const std::string& name);

}  // namespace stretto::modelling
