// SPDX-License-Identifier: BSD-3-Clause
// What a recorded job could gain at most if its calls returned early (STRETTO_OVERLAP), by what was
// recorded alone: no machine's costs are asked.
//
// Of a call, hidden is at most the shorter of two times: *moving*, from when all had come for whom
// the rank waits until it left, and *computing* from there to its next call of MPI. A recording
// does not know which memory a program touches. At best it touches no data of a call before the
// next one.
#pragma once
#include <string>
#include <vector>

namespace stretto::modelling {

// `job early [WHERE RANKS ARE] -- RECORDING...` prints as JSON:
//   seconds  of the job
//   nodes    on which its ranks are
//   hidden   at most, of the rank of which most is hidden
//   sites    blocking collectives by function and place: calls of all ranks, how many of them may
//            return early, and why others do not: one_node, short, or never. In seconds of the rank
//            that has most: in_calls of all calls; moving, computing and hidden of those that may
void early_job(const std::vector<std::string>& words);

}  // namespace stretto::modelling
