// SPDX-License-Identifier: BSD-3-Clause
// Runs one collective on a fresh node and counts.
#pragma once
#include <string>

#include "directory.hpp"

namespace stretto::node {

struct Question {
  Machine machine;
  std::vector<int> cores;  // by rank
  std::string collective;
  std::size_t bytes = 0;
  std::string way;                // the library's (calls.hpp), or the shape of bare flags
  int warm_calls = 0, calls = 0;  // 0: as many as the queues have records, so that all are used
};

// Of one call, on average. All ranks begin at once.
struct Answer {
  std::string error;  // empty: there is none
  std::string way;
  int calls = 0;       // counted
  Counts counts;       // of all of them
  double last_ns = 0;  // until the last rank has returned
  double mean_ns = 0;  // of ranks
  double loop_ns = 0;  // in a loop, where ranks begin when they like
};

Answer measure(const Question& question);

}  // namespace stretto::node
