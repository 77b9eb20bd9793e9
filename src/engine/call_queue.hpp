// SPDX-License-Identifier: BSD-3-Clause
// Calls by schedule that the program does not wait for, on one communicator.
//
// One of them is under way at a time. The others wait for their turn, in the order in which the
// program made them, which is the same on all members. So messages of two calls never meet. This
// costs no progress that MPI promises. A rank that waits for the second call needs the second call
// of all members. Each of these has made the first one before, and drives both.
//
// The scheduler has a team of its own (Scheduler::stay_apart). Blocking calls on the same
// communicator go past these calls, in either order.
//
// Threads: the caller holds a lock.
#pragma once
#include "engine/prepared.hpp"

namespace stretto::engine {

class CallQueue {
 public:
  CallQueue() = default;
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // Takes its turn. `call` must stay until take_ended() returns it.
  void post(Prepared& call);
  // Does what can be done now. True if anything moved.
  bool advance();
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  // A call that has ended, in the order of their ends. Null: there is none.
  Prepared* take_ended();

 private:
  void start();
  void end(const Outcome& outcome);
  void check_peers();

  Prepared* first_ = nullptr;  // under way
  Prepared* last_ = nullptr;
  Prepared* ended_ = nullptr;
  Prepared* last_ended_ = nullptr;
  PendingCall pending_;
  Status broken_ = Status::ok;       // an earlier call failed in its midst: this rank is out of step
  std::uint32_t idle_ = 0;           // advances in vain
  std::uint64_t idle_since_ns_ = 0;  // 0: the clock has not been read
};

}  // namespace stretto::engine
