// SPDX-License-Identifier: BSD-3-Clause
// The messages of a communicator's schedules: to members on this node through the queues of a team of theirs, to all
// others by a transport that leads beyond. Where a message goes is a fact of the two members that it goes between, so
// both know.
//
// A pair's messages are posted in one order on both sides (sched/execute.hpp), and a queue keeps it: there is nothing
// to match. But a receive may be posted long after the message was sent, and slots are given back in the order in which
// they were taken: a reader who is not there yet would hold up all others, and what he waits for, too. So until a
// reader has said that it has a place for a message (Ack::ready), only slots of a lane apart go to it
// (Call::lane_ahead). Where those are all out, its sender waits for that word; nobody ever waits for them. To wait for
// it in any case would cost a round of all ranks where processors are short.
#pragma once
#include <optional>

#include "base/array.hpp"
#include "engine/engine.hpp"
#include "engine/posted.hpp"
#include "sched/execute.hpp"
#include "shm/message.hpp"

namespace stretto::engine {

class Edges {
 public:
  Edges() = default;
  ~Edges();
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  // All messages go beyond.
  void start(const sched::Transport& beyond) { beyond_ = beyond; }
  // From now on those to `node`'s members, which are these ranks of `size`, do not. Takes `node`. False: no memory,
  // nothing has changed.
  bool join(Comm* node, const int* ranks, int size);
  [[nodiscard]] bool joined() const { return node_ != nullptr; }

  // All members do so for each schedule, in the same order.
  void begin(Collective collective);
  void end() { call_.reset(); }
  // The call has failed here: members on this node that wait for this one hear of it.
  void give_up(Status status);
  // Whether those that this rank waits for can still come; after a wait of so long. If not, the transport is broken.
  void look_around(std::uint64_t waited_ns);
  // The member that has ended, of the communicator's ranks; -1: none.
  [[nodiscard]] int lost() const { return lost_; }
  [[nodiscard]] sched::Transport transport();

 private:
  // One direction of a pair, in this call.
  struct Line {
    Posted::Queue queue;
    bool begun = false;  // the first message is being moved
    bool ready = false;  // and, outwards, it need not go ahead of its reader
  };

  void pop(Line& line);
  bool step_out(int seat);
  bool step_in(int seat);
  bool step();
  int poll(std::uint32_t* tickets, int capacity);
  Status failure() const;
  [[nodiscard]] bool awaits(int seat) const;

  sched::Transport beyond_;
  int lost_ = -1;
  Comm* node_ = nullptr;
  shm::Team* team_ = nullptr;
  std::optional<shm::Call> call_;
  Array<int> seats_;  // in the team, by rank; -1: beyond
  Array<Line> out_, in_;
  Posted posted_;
  unsigned idle_ = 0;  // polls that have moved nothing
};

}  // namespace stretto::engine
