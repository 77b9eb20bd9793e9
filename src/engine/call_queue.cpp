// SPDX-License-Identifier: BSD-3-Clause
#include "engine/call_queue.hpp"

#include "base/tuning.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {
namespace {

// How often a call that stands still looks whether its peers are there.
constexpr std::uint32_t kIdlePerLook = 1024;

// After these this rank has had its part of all messages.
bool is_in_step(Status status) {
  return status == Status::ok || status == Status::truncated || status == Status::other_length;
}

}  // namespace

void CallQueue::post(Prepared& call) {
  call.next = nullptr;
  if (last_ != nullptr) {
    last_->next = &call;
    last_ = &call;
    return;
  }
  first_ = last_ = &call;
  start();
}

// Starts the first call. Calls that move nothing end at once. After a failure, so do all others,
// and peers hear of it.
void CallQueue::start() {
  while (first_ != nullptr) {
    idle_ = 0;
    idle_since_ns_ = 0;
    if (!is_in_step(broken_)) {
      if (first_->moves) first_->scheduler.refuse(first_->call, broken_);
      end(outcome_of(broken_));
      continue;
    }
    if (!first_->moves) {
      end(outcome_of(Status::ok));
      continue;
    }
    pending_ = first_->scheduler.start(first_->call);
    return;
  }
}

void CallQueue::end(const Outcome& outcome) {
  Prepared& call = *first_;
  first_ = call.next;
  if (first_ == nullptr) last_ = nullptr;
  call.next = nullptr;
  call.outcome = call.moves && is_in_step(outcome.status) ? call.finish(outcome) : outcome;
  (ended_ == nullptr ? ended_ : last_ended_->next) = &call;
  last_ended_ = &call;
}

bool CallQueue::advance() {
  bool moved = false;
  while (first_ != nullptr) {
    Scheduler& scheduler = first_->scheduler;
    const bool more = scheduler.advance(pending_, &moved);
    if (more) {
      moved ? void(idle_ = 0) : check_peers();
      return moved;
    }
    const Outcome outcome = scheduler.finish(pending_);
    if (!is_in_step(outcome.status)) broken_ = outcome.status;
    moved = true;
    end(outcome);
    start();
  }
  return moved;
}

void CallQueue::check_peers() {
  if (++idle_ % kIdlePerLook != 0) return;
  const std::uint64_t now = sys::now_ns();
  if (idle_since_ns_ == 0 || idle_ == kIdlePerLook) idle_since_ns_ = now;
  first_->scheduler.check_peers(now - idle_since_ns_);
}

Prepared* CallQueue::take_ended() {
  Prepared* const call = ended_;
  if (call != nullptr) ended_ = call->next;
  return call;
}

}  // namespace stretto::engine
