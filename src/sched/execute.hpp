// SPDX-License-Identifier: BSD-3-Clause
// The executor: runs one rank's schedule on real memory, many steps at once, in whatever order data
// arrives.
//
//   Program     a schedule prepared once: which step waits for which, where data lands
//   Execution   one run of it, started and then advanced until done; no step of it blocks
//
// One thread at a time may advance an execution.
//
// A receive whose data is to be combined lands in memory of the program's own, before its
// dependencies are met. Only the combination has to wait.
//
// Landing places are handed on along chains of combinations. Each chain has as many places as
// open_receives() says, so a sum over many children keeps that many receives open. For short
// vectors these are many, because a message takes as long as one way through the network. For long
// vectors they are two, because one arrives while the other is combined.
//
// A landing place becomes free when a step completes that its inheritor depends on anyhow. So a
// receive may be posted earlier than the schedule asks (schedule.hpp, progress), never later.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/status.hpp"
#include "sched/schedule.hpp"
#include "shm/waiter.hpp"
#include "transport/transport.hpp"

namespace stretto::sched {

// out[i] = left[i] op right[i] for `units` units. `out` may be exactly `left` or `right`; nothing
// else overlaps.
struct Combination {
  void* context = nullptr;
  void (*apply)(void* context, char* out, const char* left, const char* right, std::uint64_t units) = nullptr;
};

class Program {
 public:
  // `unit_bytes` is the size of a unit; the landing places (scratch_units) depend on it. False: no
  // memory.
  bool prepare(Schedule schedule, std::uint64_t unit_bytes = 1);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // What a binding must have behind Buffer::scratch, landing places included.
  [[nodiscard]] std::uint64_t scratch_units() const { return landing_end_; }

 private:
  friend class Execution;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  // Of one chain.
  static constexpr std::uint64_t kLeastOpen = 2, kMostOpen = 16, kLandingBytes = 64 << 10;

  static int open_receives(std::uint64_t bytes) {
    return static_cast<int>(std::clamp(kLandingBytes / std::max<std::uint64_t>(bytes, 1), kLeastOpen, kMostOpen));
  }

  bool link();
  bool order_messages();
  bool place_landings(std::uint64_t unit_bytes);

  Schedule schedule_;
  Array<std::uint32_t> first_successor_, successors_;
  Array<std::uint32_t> following_;          // the next message of the pair in this direction
  Array<std::uint8_t> follows_;             // 1: a message that is not the first of its pair
  Array<std::uint64_t> landing_;            // of a recv_reduce, in scratch
  Array<std::uint32_t> landing_successor_;  // has a step's landing place next, once it is complete
  Array<std::uint8_t> inherits_;
  std::uint64_t landing_end_ = 0;
};

// What the symbols of a schedule stand for in one call.
struct Binding {
  char* buffers[kBuffers] = {};  // send is only read
  std::uint64_t unit_bytes = 1;
  Combination combination;
  transport::Transport transport;
};

// Steps that may start: lowest priority number first, then in the schedule's order.
class StepQueue {
 public:
  bool reserve(std::size_t steps) { return heap_.reserve(steps); }
  void clear() { heap_.clear(); }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::uint32_t first() const { return static_cast<std::uint32_t>(heap_[0]); }
  void push(std::uint32_t step, std::uint16_t priority);
  void pop();

 private:
  Array<std::uint64_t> heap_;
};

class Execution;

// run() calls it now and then while nothing moves.
struct Look {
  void* context = nullptr;
  void (*look)(void* context, const Execution& execution, std::uint64_t idle_ns) = nullptr;
};

class Execution {
 public:
  // Takes the memory it needs, once. False: there is none. Several executions may run one program.
  bool prepare(const Program& program);
  void start(const Binding& binding);
  // Does what can be done now. True if anything moved.
  bool advance();
  [[nodiscard]] bool done() const { return left_ == 0 || status_ != Status::ok; }
  [[nodiscard]] Status status() const { return status_; }
  // Advances until done. While nothing moves, it waits as `policy` says.
  Status wait(const shm::WaitPolicy& policy, const Look& look = {});
  Status run(const Binding& binding, const shm::WaitPolicy& policy, const Look& look = {}) {
    start(binding);
    return wait(policy, look);
  }
  // Calls visit(peer, receives) for each message under way.
  template <class Visit>
  void each_message(Visit visit) const {
    for (std::uint32_t i = 0; i < states_.size(); ++i) {
      if (states_[i] == State::posted) visit(step(i).peer, step(i).receives());
    }
  }

 private:
  enum class State : std::uint8_t { waiting, posted, arrived, complete };

  [[nodiscard]] const Step& step(std::uint32_t i) const { return program_->schedule_.steps[i]; }
  [[nodiscard]] char* address(Buffer buffer, std::uint64_t offset) const {
    return binding_.buffers[static_cast<int>(buffer)] + offset * binding_.unit_bytes;
  }
  bool collect();
  bool post(std::uint32_t i);
  void perform(std::uint32_t i);
  void finished(std::uint32_t i);
  void complete(std::uint32_t i);
  void met(std::uint32_t i);
  void open(std::uint32_t i);

  const Program* program_ = nullptr;
  Binding binding_;
  // How much a step still waits for. For a recv_reduce: how much its combination waits for, its own
  // message included.
  Array<std::uint32_t> pending_;
  // Of a recv_reduce: what its message waits for, which is a landing place and its turn.
  Array<std::uint8_t> closed_;
  Array<State> states_;
  StepQueue messages_;  // to be posted
  StepQueue work_;      // to be copied or combined
  std::size_t left_ = 0;
  Status status_ = Status::ok;
};

}  // namespace stretto::sched
