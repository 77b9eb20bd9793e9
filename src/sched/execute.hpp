// SPDX-License-Identifier: BSD-3-Clause
// The executor: runs one rank's schedule on real memory, many steps at once, in whatever order data arrives.
//
//   Program     a schedule prepared once: who waits for whom, where what is to be combined lands
//   Execution   one run of it: started, advanced until done, from any one thread at a time; no step of it blocks
//
// A receive that is to be combined lands in memory of the program's own, before its dependencies are met: only the
// combination has to wait. Landing places are handed on along chains of combinations, as many places for each chain as
// open_receives() says, so a sum over many children keeps that many receives open: of short vectors many, because
// messages then take as long as one way through the network, of long ones two, because one arrives while the other is
// combined. The place that a step inherits is free when a step has finished that it depends on anyhow, so it may be
// posted earlier than the schedule asks (schedule.hpp, progress), never later.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/status.hpp"
#include "sched/schedule.hpp"
#include "shm/wait.hpp"
#include "transport/transport.hpp"

namespace stretto::sched {

// out[i] = left[i] op right[i] for `units` units; `out` may be exactly `left` or `right`, otherwise nothing overlaps.
struct Combination {
  void* context = nullptr;
  void (*apply)(void* context, char* out, const char* left, const char* right, std::uint64_t units) = nullptr;
};

class Program {
 public:
  // For units of `unit_bytes`, by which it weighs the memory it asks for (scratch_units). False: no memory.
  bool prepare(Schedule schedule, std::uint64_t unit_bytes = 1);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  // What a binding must have behind Buffer::scratch, landing places included.
  [[nodiscard]] std::uint64_t scratch_units() const { return landing_end_; }

 private:
  friend class Execution;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kLeastOpen = 2, kMostOpen = 16, kLandingBytes = 64 << 10;  // of one chain

  static int open_receives(std::uint64_t bytes) {
    return static_cast<int>(std::clamp(kLandingBytes / std::max<std::uint64_t>(bytes, 1), kLeastOpen, kMostOpen));
  }

  bool link();
  bool order_messages();
  bool place_landings(std::uint64_t unit_bytes);

  Schedule schedule_;
  Array<std::uint32_t> first_successor_, successors_;
  Array<std::uint32_t> following_;          // the next message of the pair in this direction
  Array<std::uint8_t> follows_;             // a message that is not the first
  Array<std::uint64_t> landing_;            // of a recv_reduce, in scratch
  Array<std::uint32_t> landing_successor_;  // of a step's landing place: may be posted when the step is complete
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

// Called now and then while nothing moves.
struct Look {
  void* context = nullptr;
  void (*look)(void* context, const Execution& execution, std::uint64_t idle_ns) = nullptr;
};

class Execution {
 public:
  // Takes the memory it needs, once; false if there is none. A program may be run by several executions.
  bool prepare(const Program& program);
  void start(const Binding& binding);
  // Does what can be done now. True if anything moved.
  bool advance();
  [[nodiscard]] bool done() const { return left_ == 0 || status_ != Status::ok; }
  [[nodiscard]] Status status() const { return status_; }
  // Advances until done, waiting kindly.
  Status run(const Binding& binding, const shm::WaitPolicy& policy, const Look& look = {});
  // The messages under way: visit(peer, receives).
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
  // What a step still waits for. Of a recv_reduce: its combination, which its own message is part of.
  Array<std::uint32_t> pending_;
  Array<std::uint8_t> closed_;  // of a recv_reduce: what its message waits for, a landing place and its turn
  Array<State> states_;
  StepQueue messages_;  // to be posted
  StepQueue work_;      // to be copied or combined
  std::size_t left_ = 0;
  Status status_ = Status::ok;
};

}  // namespace stretto::sched
