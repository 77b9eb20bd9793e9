// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule as messages that the driver moves (exchange.hpp).
//
//   send         a message out, or where a message goes that has just come
//   recv         a message into the buffer
//   recv_reduce  a message that is combined with this rank's contribution
//   copy         nothing: what a rank has for itself is in its place before
//
// The driver posts all messages at once. So what is sent, or combined, must be in the program's
// memory from the beginning, or go on as it has come. Schedules with other steps are not played.
#pragma once
#include "overlap/exchange.hpp"
#include "overlap/placed_parts.hpp"

namespace stretto::overlap {

class PlayedSchedule {
 public:
  // What the schedule's buffers and peers are.
  PlayedSchedule(const PlacedParts& send, const PlacedParts& receive, const int* job_ranks)
      : send_(send), receive_(receive), job_ranks_(job_ranks) {}

  // Gives a call its messages and its buffer, which are valid as long as this object. `own`: the
  // part of `receive` that is in its place; -1: none. False: there is no memory, or the schedule
  // cannot be played.
  bool play(const sched::Schedule& schedule, int own, Exchange* call);

 private:
  [[nodiscard]] PlacedParts::Place find(const sched::Slice& slice) const;
  void lay_out(Exchange* call);
  bool send(const sched::Schedule& schedule, const sched::Step& step);
  bool receive(const sched::Schedule& schedule, const sched::Step& step, const Exchange& call);

  const PlacedParts &send_, &receive_;
  const int* job_ranks_;
  Array<Block> blocks_;
  Array<MessageOut> sends_;
  Array<MessageIn> receives_;
  Array<std::size_t> received_;  // how many receives are before each step
};

}  // namespace stretto::overlap
