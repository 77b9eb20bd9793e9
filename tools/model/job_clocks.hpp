// SPDX-License-Identifier: BSD-3-Clause
// When the ranks of a recorded job began, by one clock.
#pragma once
#include <vector>

#include "job_file.hpp"

namespace stretto::modelling {

// When each rank left MPI_Init, in seconds from the first. Hosts have clocks of their own. There it
// follows from collectives of MPI_COMM_WORLD in which all wait for all: no rank leaves before
// another one comes. So of each call it is known how much a clock is ahead at least and at most,
// and of all calls together the narrowest such range. It may be as wide as one rank is always
// later than another. Ranks leave such calls at about one time, so within the range the median of
// that counts. Without such a call all begin at one time.
std::vector<double> starts_of(const JobFile& job);

}  // namespace stretto::modelling
