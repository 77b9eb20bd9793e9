// SPDX-License-Identifier: BSD-3-Clause
// Why a job took as long as it did. The critical path is a chain of steps and messages, back from
// the job's end: each began when the one before was over. Its parts add up to the job's time.
#pragma once
#include "sched/timer.hpp"

namespace stretto::sched {

struct CriticalPath {
  Array<std::uint32_t> steps;  // from the last to the first
  int messages = 0;
  double entry = 0;     // before the first rank on the path called
  double overhead = 0;  // in which processors sent, received and handled messages
  double latency = 0;
  double bytes = 0;  // on the wire
  double port = 0;   // of messages held up at ports
  double gap = 0;
  double crowd = 0;  // waits for a processor, or for a port before that
  double reduce = 0, copy = 0;

  [[nodiscard]] double total() const { return entry + overhead + latency + bytes + port + gap + crowd + reduce + copy; }
};

CriticalPath critical_path(const Timer& timer);

}  // namespace stretto::sched
