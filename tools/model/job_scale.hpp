// SPDX-License-Identifier: BSD-3-Clause
// A job on another number of ranks, from recordings of it on two or three.
#pragma once
#include <string>
#include <vector>

namespace stretto::modelling {

// `job scale RANKS FILE (-- RECORDING...)...`: each job's files stand behind a "--".
//
// Writes a packed recording of `ranks` ranks, and prints as JSON which law each call follows. Ends
// the program, with the reason, where the calls follow none.
//
// All ranks of a class (scale_plan.hpp) make the same calls in the same loops, whatever the number
// of ranks. What differs is the turns of loops, whom a call names, lengths, and times. Each of
// these is a law of the number of ranks, found from all recordings, and held against all of them.
// What a law does not say is as in the recording of most ranks.
void scale_job(const std::vector<std::string>& words);

}  // namespace stretto::modelling
