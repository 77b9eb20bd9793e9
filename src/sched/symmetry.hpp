// SPDX-License-Identifier: BSD-3-Clause
// Symmetry of a job: in rings and other rotations, what rank r does, rank r + Q does as well, with
// peers that are Q higher. Q is the period. Ranks 0 to Q - 1 then do at each time what all others
// do, so the timer runs these ranks alone (Timer::Job::period).
//
// On a machine of one level the period is one rank. On a machine of levels it is the ranks of a
// domain below the top, if the domains of each level hold equally many neighbouring ranks.
#pragma once
#include "sched/costs.hpp"
#include "sched/schedule.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::sched {

// The number of ranks after which the machine repeats. `ranks` where it does not, or where all
// ranks share processors.
int period_of(const topo::Hierarchy* hierarchy, const Costs& costs, int ranks);

// Whether a schedule does on `rank` what another does on `other_rank`, each with the peers at the
// same distances around all ranks. Buffers and offsets may differ, because they take no time.
bool does_the_same(const Schedule& schedule, int rank, const Schedule& other, int other_rank, int ranks);

}  // namespace stretto::sched
