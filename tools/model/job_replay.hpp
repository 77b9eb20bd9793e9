// SPDX-License-Identifier: BSD-3-Clause
// Replays a recorded job in virtual time, in seconds: each rank computes for as long as it did, its
// messages cost what a machine's costs say, and waits last as long as what they wait for.
//
// Ranks go on in the order of their times, so that messages meet at ports as they would. A message
// is matched with its receive by communicator, both ranks, tag, and order; a receive with wildcards
// takes what it took when it was recorded. Short messages are on their way when they are sent, long
// ones when their receive is posted too. Collectives are those of job_meetings.hpp. On an ideal
// network nothing but waiting for each other takes time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "job_collectives.hpp"
#include "job_critical.hpp"
#include "job_file.hpp"
#include "job_gaps.hpp"
#include "select/candidates.hpp"

namespace stretto::modelling {

struct ReplayOptions {
  const select::Machine* machine = nullptr;  // costs in nanoseconds; null: an ideal network
  CollectiveTimes* collectives = nullptr;    // with a machine
  std::uint64_t eager_bytes = 64 << 10;      // longer messages wait for their receive
  GapOptions gaps;
  bool balance = false;   // each rank computes for the mean of all
  bool overlap = false;   // calls return early where they may, and data are needed at the next call
  bool critical = false;  // say what is on the critical path: the job is replayed twice
};

struct RankSummary {
  double end = 0, compute = 0, wait = 0;
};

// Of a place in the program whose calls return early.
struct SiteSummary {
  std::uint64_t calls = 0;
  double hidden = 0;  // seconds in which data came while the rank computed
};

struct Replayed {
  double seconds = 0;
  std::uint64_t calls = 0, messages = 0, bytes = 0;
  std::vector<RankSummary> ranks;
  std::vector<Critical> critical;               // those that have most first
  std::vector<std::vector<SiteSummary>> sites;  // by rank and term, with overlap
  std::string failure;                          // not empty: the recording cannot be replayed, and why
};

Replayed replay(const JobFile& job, const ReplayOptions& options);

// What the recording itself says: the end is that of the last call.
Replayed measured(const JobFile& job);

}  // namespace stretto::modelling
