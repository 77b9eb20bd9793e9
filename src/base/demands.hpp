// SPDX-License-Identifier: BSD-3-Clause
// What the user demands and does not get. Some options may demand a way of serving calls: "on",
// "always" or a number, where "auto" leaves the choice to Stretto. Where Stretto cannot obey, one
// line says why, once a job for each option, whether or not STRETTO_EXPLAIN is set.
#pragma once
#include "base/options.hpp"

namespace stretto {

// Called in the process that speaks for the job. All others stay silent.
void demands_start(const Options& options);

// All that find out call it. Says why the option has no effect on a communicator of so many ranks,
// or with 0 in the whole job. Does nothing if nobody demands it, or if a reason has been said.
[[gnu::cold]] void demand_refused(Option option, int ranks, const char* why);

}  // namespace stretto
