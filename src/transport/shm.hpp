// SPDX-License-Identifier: BSD-3-Clause
// The messages of a communicator's schedules to members on this node, through the queues of a team
// of theirs.
//
// A pair's messages are posted in one order on both sides (transport.hpp), and a queue keeps it:
// there is nothing to match. But a receiver may post its receive long after the message was sent,
// and slots are given back in the order in which they were taken: a reader that is not there yet
// would hold up all others, and what it waits for itself. Therefore a message to a reader that has
// not said that it has a place for it (Ack::ready) takes slots of a lane apart only
// (Call::lane_ahead). When all of those are in use, the sender waits for that word. Nobody ever
// waits for those slots. Waiting for the word in any case would cost a round of all ranks where
// processors are short.
#pragma once
#include <optional>

#include "base/array.hpp"
#include "shm/message.hpp"
#include "transport/posted.hpp"
#include "transport/transport.hpp"

namespace stretto::transport {

class ShmTransport {
 public:
  ShmTransport() = default;
  ~ShmTransport() = default;
  ShmTransport(const ShmTransport&) = delete;
  ShmTransport& operator=(const ShmTransport&) = delete;

  // It takes messages to `team`'s members, which are these ranks of `size`. The team stays. False:
  // no memory, nothing has changed.
  bool join(shm::Team& team, const int* ranks, int size);
  // The program does not wait for the calls of these schedules (shm/lane.hpp).
  void stay_apart() { apart_ = true; }
  [[nodiscard]] bool joined() const { return team_ != nullptr; }

  // Whether those that this rank waits for can still come; after a wait of so long. If not, the
  // transport is broken.
  void check_peers(std::uint64_t waited_ns);
  // The member that has ended, of the communicator's ranks; -1: none.
  [[nodiscard]] int lost() const { return lost_; }
  [[nodiscard]] Transport transport();

 private:
  void begin(Collective collective);
  void end() { call_.reset(); }
  void abort(Status why);

  // One direction of a pair, in this call.
  struct Direction {
    Posted::Queue queue;
    bool begun = false;  // the first message is being moved
    bool ready = false;  // and, outwards, it need not go ahead of its reader
  };

  void pop(Direction& direction);
  bool step_out(int member);
  bool step_in(int member);
  bool step();
  int poll(std::uint32_t* tickets, int capacity);
  [[nodiscard]] bool awaits(int member) const;

  int lost_ = -1;
  bool apart_ = false;
  shm::Team* team_ = nullptr;
  std::optional<shm::Call> call_;
  Array<int> members_;  // in the team, by rank; -1: of another node
  Array<Direction> out_, in_;
  Posted posted_;
  unsigned idle_ = 0;  // polls that have moved nothing
};

}  // namespace stretto::transport
