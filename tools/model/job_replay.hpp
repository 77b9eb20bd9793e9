// SPDX-License-Identifier: BSD-3-Clause
// Replays a recorded job in virtual time, in seconds: each rank computes for as long as it did, its
// messages cost what a machine's costs say, and waits last as long as what they wait for.
//
// Ranks go on in the order of their times, so that messages meet at ports as they would. A message
// is matched with its receive by communicator, both ranks, tag, and order; a receive with wildcards
// takes what it took when it was recorded. Short messages are on their way when they are sent, long
// ones when their receive is posted too.
//
// A collective begins when its members come. The last one that comes takes as long from there as
// the fastest member took in the recording, times a factor for another machine. On an ideal network
// nothing but waiting for each other takes time.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "job_actions.hpp"
#include "job_critical.hpp"
#include "job_file.hpp"
#include "select/candidates.hpp"

namespace stretto::modelling {

struct ReplayOptions {
  const select::Machine* machine = nullptr;  // costs in nanoseconds; null: an ideal network
  std::uint64_t eager_bytes = 64 << 10;      // longer messages wait for their receive
  // By what the time of a collective among these ranks of the job is multiplied. Empty: by 1.
  std::function<double(const Action& action, const std::vector<int>& members)> collectives;
  double compute = 1;         // a factor of all computation
  bool balance = false;       // each rank computes for the mean of all
  bool critical = false;      // say what is on the critical path: the job is replayed twice
  bool by_processor = false;  // computation without the time without a processor
};

struct RankSummary {
  double end = 0, compute = 0, wait = 0;
};

struct Replayed {
  double seconds = 0;
  std::uint64_t calls = 0, messages = 0, bytes = 0;
  std::vector<RankSummary> ranks;
  std::vector<Critical> critical;  // those that have most first
  std::string failure;             // not empty: the recording cannot be replayed, and why
};

Replayed replay(const JobFile& job, const ReplayOptions& options);

// What the recording itself says: the end is that of the last call.
Replayed measured(const JobFile& job);

}  // namespace stretto::modelling
