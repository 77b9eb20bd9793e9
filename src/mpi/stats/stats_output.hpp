// SPDX-License-Identifier: BSD-3-Clause
// What the files of the statistics share: what is counted, and this rank's part of the texts.
#pragma once
#include "mpi/state/state.hpp"
#include "mpi/stats/profile.hpp"
#include "observe/stats_json.hpp"
#include "observe/totals.hpp"

namespace stretto::mpi {

using observe::Quoted;
using observe::RankTotals;
using observe::StatsText;

// The freed communicators of one size and reason.
struct FreedCommunicators {
  int size;
  // Why they were left to the host, null if they were not. Reasons are literals: pointers compare.
  const char* reason;
  engine::Refused refused;  // of the first communicator on which single copy was refused
  std::uint64_t communicators;
  Counters counters;
  FreedCommunicators* next;
};

inline engine::Refused refused_on(const State& state) {
  return state.engine != nullptr ? engine::comm_refused(*state.engine) : engine::Refused{};
}

// This rank's object. `waits`: null if its calls have not been compared.
void json_rank(StatsText& out, const RankTotals& totals, const FreedCommunicators* freed, const Waits* waits);
// What all ranks have in common, as seen by this one: between the keys `ranks` and `per_rank`.
void json_run(StatsText& out);
// Where this rank is: the keys behind `rank`.
void json_place(StatsText& out);

}  // namespace stretto::mpi
