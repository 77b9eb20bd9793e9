// SPDX-License-Identifier: BSD-3-Clause
#include "transport/bulk/bulk_transport.hpp"

namespace stretto::transport::bulk {

Transport BulkTransport::transport() {
  return {this,
          [](void* self, int peer, std::uint32_t message_index, const char* data, std::uint64_t bytes,
             std::uint32_t ticket) {
            BulkTransport& t = *static_cast<BulkTransport*>(self);
            Handle handle = nullptr;
            t.make_ready(data, bytes);
            return t.posted(t.driver_->post_send(t.ranks_[peer], {t.comm_, t.call_, message_index}, data, bytes,
                                                 &handle, t.listener(ticket)));
          },
          [](void* self, int peer, std::uint32_t message_index, char* data, std::uint64_t bytes, std::uint32_t ticket) {
            BulkTransport& t = *static_cast<BulkTransport*>(self);
            Handle handle = nullptr;
            t.make_ready(data, bytes);
            return t.posted(t.driver_->post_recv(t.ranks_[peer], {t.comm_, t.call_, message_index}, data, bytes,
                                                 &handle, t.listener(ticket)));
          },
          [](void* self, std::uint32_t* tickets, int capacity) {
            return static_cast<BulkTransport*>(self)->poll(tickets, capacity);
          },
          [](void* self) { return static_cast<const BulkTransport*>(self)->status_; },
          nullptr,
          [](void* self, Collective) { static_cast<BulkTransport*>(self)->begin(); },
          nullptr,
          [](void* self, Status why, int lost) { static_cast<BulkTransport*>(self)->abort(why, lost); },
          nullptr,
          [](void* self) { return static_cast<const BulkTransport*>(self)->lost_; }};
}

// A message that was too long is the error of its own call alone.
void BulkTransport::begin() {
  ++call_;
  if (status_ == Status::truncated) status_ = Status::peer_failed;
}

// What cannot be posted breaks the transport, and a poll says so.
bool BulkTransport::posted(Status status) {
  open_ += status == Status::ok ? 1 : 0;
  if (status != Status::ok) fail(status, {});
  return status == Status::ok;
}

void BulkTransport::fail(Status status, const Lost& lost) {
  if (status_ != Status::ok) return;
  status_ = status;
  lost_ = {member(lost.rank), member(lost.witness)};
}

int BulkTransport::member(int job_rank) const {
  for (int rank = 0; rank < size_; ++rank) {
    if (ranks_[rank] == job_rank) return rank;
  }
  return -1;
}

void BulkTransport::finished(void* self, Handle handle, Status) {
  std::atomic<Message*>& first = static_cast<BulkTransport*>(self)->finished_;
  handle->next_finished = first.load(std::memory_order_relaxed);
  while (!first.compare_exchange_weak(handle->next_finished, handle, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

void BulkTransport::collect() {
  if (finished_.load(std::memory_order_relaxed) == nullptr) return;
  for (Message* handle = finished_.exchange(nullptr, std::memory_order_acquire); handle != nullptr;) {
    Message* const next = handle->next_finished;
    if (handle->status != Status::ok)
      fail(handle->status, handle->lost);
    else if (!through_.push(static_cast<std::uint32_t>(handle->listener.word)))
      fail(Status::no_memory, {});
    driver_->complete(handle);
    --open_;
    handle = next;
  }
}

int BulkTransport::poll(std::uint32_t* tickets, int capacity) {
  collect();
  if (status_ != Status::ok) {
    abort(status_, lost_.rank);
    return -1;
  }
  return hand_out(through_, tickets, capacity);
}

// The driver ends the messages within a turn, so this waits for little. Then the memory is the
// caller's.
void BulkTransport::abort(Status why, int lost) {
  if (has_aborted_ || driver_ == nullptr) return;
  has_aborted_ = true;
  if (status_ == Status::ok) status_ = why;
  for (int rank = 0; rank < size_; ++rank)
    driver_->abandon(ranks_[rank], comm_, {status_, lost >= 0 ? ranks_[lost] : -1});
  for (collect(); open_ != 0; collect()) sys::nap_ns(20'000);
}

}  // namespace stretto::transport::bulk
