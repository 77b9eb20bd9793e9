// SPDX-License-Identifier: BSD-3-Clause
// A schedule: what one rank does in one collective, as data.
//
// Steps move or combine slices of three symbolic buffers. A step may start when the steps that it
// depends on are complete. Nothing else orders steps, so all that can overlap does.
//
// Offsets and lengths count units: bytes, or elements of the call's datatype. Buffers have no
// addresses. So one schedule serves every call of the same shape. Schedules are read by the
// executor (execute.hpp), the verifier (verify.hpp), the timer and the diagrams.
//
// Matching: the n-th send of a to b and the n-th recv of b from a are one message and have the same
// length. Both count in the order of the two schedules. Messages of one pair are numbered, so that
// a transport may match them in any order.
//
// Progress: a schedule must complete even if a send waits for its receive, and a receive is posted
// only when its dependencies are met. The verifier executes it so. An executor that posts receives
// earlier only does better.
#pragma once
#include <cstdint>
#include <span>

#include "base/array.hpp"

namespace stretto::sched {

// `send` is the caller's and read-only. `receive` is the caller's and written; in place it is read
// as well. `check` has words of this rank that peers get, and words of peers in their places: those
// who run the schedule compare them.
enum class Buffer : std::uint8_t { send, receive, scratch, check };
inline constexpr int kBuffers = 4;

struct Slice {
  Buffer buffer = Buffer::receive;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  [[nodiscard]] std::uint64_t end() const { return offset + length; }
  [[nodiscard]] Slice part(std::uint64_t from, std::uint64_t units) const { return {buffer, offset + from, units}; }
  bool operator==(const Slice&) const = default;
};

enum class Kind : std::uint8_t {
  send,         // source -> peer
  recv,         // peer -> target
  recv_reduce,  // target = source combined with what arrives from peer
  copy,         // target = source
  reduce,       // target = target combined with source
};
inline constexpr int kKinds = 5;
inline constexpr const char* kKindNames[kKinds] = {"send", "recv", "recv_reduce", "copy", "reduce"};

// Where the other operand stands: what arrives in a recv_reduce, the source in a reduce. Operations
// need not commute.
enum class Side : std::uint8_t { left, right };

struct Step {
  Kind kind;
  Side side;  // of the other operand
  Buffer source, target;
  std::uint16_t segment;        // the part of the collective's data that this step belongs to
  std::uint16_t priority;       // among steps that may start, the lowest goes first
  std::int32_t peer;            // -1: local
  std::uint32_t message_index;  // n of the pair's n-th message in this direction
  std::uint32_t first_dependency, dependencies;
  std::uint64_t source_offset, target_offset, length;

  [[nodiscard]] Slice source_slice() const { return {source, source_offset, length}; }
  [[nodiscard]] Slice target_slice() const { return {target, target_offset, length}; }
  [[nodiscard]] bool reads() const { return kind != Kind::recv; }   // its source
  [[nodiscard]] bool writes() const { return kind != Kind::send; }  // its target
  [[nodiscard]] bool is_message() const { return kind <= Kind::recv_reduce; }
  [[nodiscard]] bool receives() const { return kind == Kind::recv || kind == Kind::recv_reduce; }
};
static_assert(sizeof(Step) == 48);

struct Schedule {
  Array<Step> steps;                  // in an order that respects the dependencies
  Array<std::uint32_t> dependencies;  // of all steps, one after the other
  std::uint64_t scratch_units = 0, check_units = 0;
  bool complete = false;  // false: there was no memory to build it

  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(const Step& step) const {
    return {dependencies.data() + step.first_dependency, step.dependencies};
  }
  [[nodiscard]] std::size_t memory_bytes() const { return steps.capacity_bytes() + dependencies.capacity_bytes(); }
};

}  // namespace stretto::sched
