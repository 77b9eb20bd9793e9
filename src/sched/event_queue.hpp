// SPDX-License-Identifier: BSD-3-Clause
// Events in the order of their times, for a clock that never goes back. The queue is a radix heap
// on the bits of the times. No time is negative, so the bits are ordered as the times are.
//
// The heap compares no pairs of events. An event moves through few buckets, and each bucket is read
// from end to end. A million events cost little more than their memory's bandwidth.
//
// Ahuja, Mehlhorn, Orlin, Tarjan 1990.
#pragma once
#include <bit>
#include <cstdint>

#include "base/array.hpp"

namespace stretto::sched {

struct Event {
  enum class Kind : std::uint32_t { wake, first_byte, drained, arrival };
  std::uint64_t key;   // the time's bits
  std::uint32_t what;  // rank or step
  Kind kind;

  [[nodiscard]] double time() const { return std::bit_cast<double>(key); }
};

class EventQueue {
 public:
  void clear() {
    for (Array<Event>& bucket : buckets_) bucket.clear();
    filled_ = 0;
    now_ = 0;
  }
  [[nodiscard]] bool empty() const { return filled_ == 0 && buckets_[0].empty(); }
  [[nodiscard]] bool failed() const {
    for (const Array<Event>& bucket : buckets_) {
      if (bucket.failed()) return true;
    }
    return false;
  }

  // The time must not be before that of the last pop().
  void push(double time, std::uint32_t what, Event::Kind kind) {
    put({std::bit_cast<std::uint64_t>(time + 0.0), what, kind});
  }

  // Moves all events of the earliest time into `batch`. The queue must not be empty.
  void pop(Array<Event>& batch) {
    batch.clear();
    if (buckets_[0].empty()) advance();
    batch.swap(buckets_[0]);
  }

 private:
  void put(const Event& event) {
    const auto bucket = static_cast<int>(std::bit_width(event.key ^ now_));
    buckets_[bucket].push(event);
    if (bucket != 0) filled_ |= std::uint64_t{1} << (bucket - 1);
  }
  void advance() {
    const int lowest = std::countr_zero(filled_) + 1;
    filled_ &= filled_ - 1;
    Array<Event>& from = buckets_[lowest];
    now_ = from[0].key;
    for (const Event& event : from) now_ = event.key < now_ ? event.key : now_;
    for (const Event& event : from) put(event);  // into lower buckets
    from.clear();
  }

  Array<Event> buckets_[65];  // [b]: the highest bit that differs from now_ is the b-th
  std::uint64_t filled_ = 0;  // bit b - 1: bucket b has events
  std::uint64_t now_ = 0;
};

}  // namespace stretto::sched
