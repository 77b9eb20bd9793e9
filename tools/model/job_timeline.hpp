// SPDX-License-Identifier: BSD-3-Clause
// When each rank of a recorded job was in which call, which message went when, and the critical
// path of the run as it was measured.
#pragma once
#include <cstddef>

#include "job_file.hpp"

namespace stretto::modelling {

// Prints JSON; times are in nanoseconds from the begin of the job:
//   functions, places   names
//   kinds               of spans: which function, which place
//   ranks               of each: begin, length and kind of its spans, behind one another
//   messages            number, and of those that are drawn: from, to, sent, time, bytes
//   critical            rank, begin and length of each part of the path, in order
//
// At most `most_spans` in all: of more, neighbours become one. At most `most_messages`: of more,
// those with most bytes. A message lasts from the begin of the call that sends to the end of the
// one that has waited for it.
void write_timeline(const JobFile& job, std::size_t most_spans, std::size_t most_messages);

}  // namespace stretto::modelling
