// SPDX-License-Identifier: BSD-3-Clause
// How algorithms emit schedules: as if the steps ran one after the other. A step depends on the earlier steps whose
// slices overlap with its own (read after write, write after read, write after write) and on those named with after();
// steps that do not touch the same data are free of each other. So an algorithm that emits segment by segment is
// pipelined.
//
// Moving nothing is no step: both ends of a message know its length. Signals of no length are for barriers.
#pragma once
#include <cstdint>

#include "sched/hazards.hpp"
#include "sched/schedule.hpp"

namespace stretto::sched {

using StepId = std::uint32_t;
inline constexpr StepId kNoStep = Hazards::kNone;

class Builder {
 public:
  StepId send(int peer, Slice from);
  StepId recv(int peer, Slice to);
  // to = with combined with what arrives, which stands at `arriving` of it. `with` and `to` may be the same slice.
  StepId recv_reduce(int peer, Slice with, Slice to, Side arriving);
  StepId copy(Slice from, Slice to);
  // to = to combined with `from`, which stands at `side` of it.
  StepId reduce(Slice from, Slice to, Side side);
  StepId signal(int peer);
  StepId await(int peer);

  // The next step also depends on `step` (kNoStep: on nothing).
  void after(StepId step) {
    if (step != kNoStep) extra_.push(step);
  }
  // Steps from here on depend on all steps before: between phases that share no data.
  void fence();
  // Memory of this schedule's own, undefined at first.
  Slice scratch(std::uint64_t units);
  void set_segment(int segment) { segment_ = static_cast<std::uint16_t>(segment); }
  void set_priority(int priority) { priority_ = static_cast<std::uint16_t>(priority); }

  // There was no memory: the schedule will not be complete.
  void fail() { failed_ = true; }

  // Hands the schedule over; the builder is as new, but keeps its memory.
  Schedule finish();
  // Takes a schedule's memory for the next one.
  void recycle(Schedule schedule);
  // What building has cost since the beginning: cells, readers and dependencies visited.
  [[nodiscard]] std::uint64_t work() const;

 private:
  struct PairCounter {
    std::uint64_t key;  // peer and direction; 0: empty
    std::uint32_t count;
  };

  StepId skip();
  StepId add(Kind kind, int peer, Slice source, Slice target, Side side);
  void depend(StepId self, StepId on);
  std::uint32_t next_message_index(int peer, bool incoming);
  void grow_counters();

  Schedule schedule_;
  Hazards hazards_[kBuffers];
  Array<StepId> extra_;
  Array<StepId> seen_by_;        // for every step, the last step that was told to depend on it
  Array<PairCounter> counters_;  // open addressing, a power of two of places
  std::size_t used_counters_ = 0;
  std::uint64_t work_ = 0;
  StepId fence_begin_ = 0, fence_end_ = 0;  // what steps follow now: the steps between the last two fences
  std::uint16_t segment_ = 0;
  std::uint16_t priority_ = 0;
  bool failed_ = false;
};

}  // namespace stretto::sched
