// SPDX-License-Identifier: BSD-3-Clause
// What joins the ranks of a recorded job in time: messages, and the waits of its critical path.
#pragma once
#include <cstdint>
#include <vector>

#include "job_file.hpp"

namespace stretto::modelling {

// From the begin of the call that sends to the end of the one that has waited for it, in seconds.
struct DrawnMessage {
  std::uint32_t from, to;
  double sent, received;
  std::uint64_t bytes;
};

// A rank's part of the critical path.
struct PathPart {
  std::uint32_t rank;
  double begin, end;
};

struct JoinedRanks {
  std::vector<DrawnMessage> messages;  // in the order of `sent`
  // From the rank that ends last back to the first begin: where a rank has waited for another one,
  // the path goes on with what that one did before. As measured, not as replayed.
  std::vector<PathPart> path;
};

// Messages and collectives meet as in a replay: by communicator, ranks, tag and order.
JoinedRanks join_ranks(const JobFile& job);

}  // namespace stretto::modelling
