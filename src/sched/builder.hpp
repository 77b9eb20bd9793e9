// SPDX-License-Identifier: BSD-3-Clause
// How algorithms emit schedules: as if the steps ran one after the other. A step depends on the
// earlier steps whose slices overlap with its own (read after write, write after read, write after
// write). It also depends on those named with after(). Other steps are independent of each other.
// So an algorithm that emits segment by segment is pipelined.
//
// A step of no length is left out: both ends of a message know its length. Signals have no length;
// they are for barriers.
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
  // to = `with` combined with what arrives. `arriving`: the side of the arriving operand. `with`
  // and `to` may be the same slice.
  StepId recv_reduce(int peer, Slice with, Slice to, Side arriving);
  StepId copy(Slice from, Slice to);
  // to = `to` combined with `from`. `side`: the side of `from`.
  StepId reduce(Slice from, Slice to, Side side);
  StepId signal(int peer);
  StepId await(int peer);

  // The next step also depends on `step` (kNoStep: on nothing).
  void after(StepId step) {
    if (step != kNoStep) extra_.push(step);
  }
  // All later steps depend on all steps before. For phases that share no data.
  void fence();
  // Memory of this schedule's own, undefined at first.
  Slice scratch(std::uint64_t units) { return take(Buffer::scratch, schedule_.scratch_units, units); }
  Slice check(std::uint64_t units) { return take(Buffer::check, schedule_.check_units, units); }
  // The next steps are of one of so many segments of the data.
  void set_segment(int segment, int of) {
    segment_ = static_cast<std::uint16_t>(segment);
    segments_ = of;
  }
  [[nodiscard]] int segment() const { return segment_; }
  [[nodiscard]] int segments() const { return segments_; }
  // Later messages go in pieces, each of which may be passed on as soon as it is there. The ends
  // come first: they may lie on pages with other data, and calls that return early wait for them.
  // All pieces but one have a multiple of 64 units: in units of bytes no element is cut.
  void cut_messages(bool cut) { cuts_ = cut; }
  // Vectors are cut at multiples of so many units.
  [[nodiscard]] std::uint64_t grain() const { return cuts_ ? kGrain : 1; }
  void set_priority(int priority) { priority_ = static_cast<std::uint16_t>(priority); }

  // The caller had no memory: finish() marks the schedule as not complete.
  void fail() { failed_ = true; }

  // Hands the schedule over. The builder starts anew, but keeps its memory.
  Schedule finish();
  // Takes a schedule's memory for the next one.
  void recycle(Schedule schedule);
  // The cost of building since the builder was made: cells, readers and dependencies visited.
  [[nodiscard]] std::uint64_t work() const;

 private:
  static constexpr std::uint64_t kGrain = 64;
  struct PairCounter {
    std::uint64_t key;  // peer and direction; 0: empty
    std::uint32_t count;
  };

  static Slice take(Buffer buffer, std::uint64_t& taken, std::uint64_t units) {
    const Slice slice{buffer, taken, units};
    taken += units;
    return slice;
  }
  template <class Piece>
  StepId add_message(std::uint64_t length, const Piece& piece);
  StepId skip();
  StepId add(Kind kind, int peer, Slice source, Slice target, Side side);
  void depend(StepId self, StepId on);
  std::uint32_t next_message_index(int peer, bool incoming);
  void grow_counters();

  Schedule schedule_;
  Hazards hazards_[kBuffers];
  Array<StepId> extra_;
  Array<StepId> seen_by_;        // for every step, the last step that was told to depend on it
  Array<PairCounter> counters_;  // open addressing; the size is a power of two
  std::size_t used_counters_ = 0;
  std::uint64_t work_ = 0;
  StepId fence_begin_ = 0, fence_end_ = 0;  // later steps follow those between the last two fences
  std::uint16_t segment_ = 0;
  std::uint16_t priority_ = 0;
  int segments_ = 1;
  bool cuts_ = false;
  bool failed_ = false;
};

}  // namespace stretto::sched
