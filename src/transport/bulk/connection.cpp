// SPDX-License-Identifier: BSD-3-Clause
#include "transport/bulk/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stretto::transport::bulk {

// Whoever has the handle may give it back as soon as it is done.
void finish(Message* message, Status status, const Lost& lost) {
  message->status = status;
  message->lost = lost;
  if (message->listener.finished != nullptr) message->listener.finished(message->listener.context, message, status);
  message->done.store(true, std::memory_order_release);
}

Connection::~Connection() {
  for (EagerSlot& slot : slots_) PrivateHeap::release(slot.data, kEagerBytes);
  for (Track* const track : both_) PrivateHeap::release(track->out.copy, track->out.payload_bytes);
}

void Connection::opened(int stream, const sys::Poller& poller) {
  Track& track = *both_[tracks()];
  track.stream = stream;
  track.file = sys::file_id(stream);
  track.readable = track.writable = true;
  (void)sys::stream_urgency(stream, &track == &words_ ? sys::Urgency::high : sys::Urgency::low);
  stage_ = tracks() == kTracks ? Stage::open : Stage::opening;
  reach_due_ = shared_.reads.fabric() != nullptr;
  if (shared_.buffer_bytes != 0) sys::stream_buffers(stream, shared_.buffer_bytes);
  if (sys::poller_set(poller, stream, {true, false}, tag_of(track)) != 0) lose();  // the handshake may have watched it
}

void Connection::fail(Status status, const Lost& lost) {
  if (stage_ == Stage::lost) return;
  stage_ = Stage::lost;
  status_ = status;
  lost_ = lost;
  for (Track* const track : both_) {
    leave_frame(track->out, status, lost);
    track->out.head_bytes = 0;
    track->out.is_refused = false;
    track->in.into = IncomingFrame::Into::head;
  }
  shared_.reads.free_all(this);
  offers_.clear();
  table_.each([&](Message* message) {
    take_out(message);
    if (message->posted)
      finish(message, status, lost);
    else
      give_back(message);
  });
  // Programs that close descriptors which they do not know get our numbers for files of their own.
  for (Track* const track : both_) {
    if (track->stream >= 0 && sys::file_id(track->stream) == track->file) sys::close_descriptor(track->stream);
    track->stream = -1;
  }
}

bool Connection::step(const sys::Poller& poller) {
  bool more = false;
  for (Track* const track : both_) more = (is_open() && step_in(*track)) || more;
  for (Track* const track : both_) more = (is_open() && step_out(*track)) || more;
  for (Track* const track : both_) {
    if (is_open()) watch(*track, poller);
  }
  return is_open() && more;
}

void Connection::watch(Track& track, const sys::Poller& poller) {
  if (track.has_ended) return (void)sys::poller_remove(poller, track.stream);
  const bool wants_room = !track.writable && track.out.head_bytes != 0;
  if (wants_room == track.watched_for_room) return;
  track.watched_for_room = wants_room;
  if (sys::poller_modify(poller, track.stream, {true, wants_room}, tag_of(track)) != 0) lose();
}

// ---- messages ----

void Connection::take_out(Message* message) {
  table_.remove(message);
  if (!message->sends) shared_.grants.remove(message);
  if (message->queued) queue_of(*message).remove(message);
}

void Connection::give_back(Message* message) {
  const Locked locked(shared_.lock);
  shared_.pool.give_back(message);
}

void Connection::post(Message* message) {
  if (stage_ == Stage::lost) return post_after_loss(message);
  if (const Failed* const failed = failure_of(message->key.comm))
    return finish(message, failed->reason.why, {failed->reason.lost, failed->told ? peer_ : shared_.rank});
  const Message* const other = table_.find(message->key, message->sends);
  if (other != nullptr && other->posted) return finish(message, Status::invalid);
  message->posted = true;
  if (message->sends)
    post_send(message);
  else
    post_recv(message);
}

// The peer may have made its last call, and ended, before this rank came to it. Its eager messages
// are here.
void Connection::post_after_loss(Message* message) {
  EagerSlot* const slot = message->sends ? nullptr : find_slot(message->key);
  if (slot == nullptr || !slot->complete) return finish(message, status_, lost_);
  table_.add(message);
  deliver(*slot, message);
}

void Connection::post_send(Message* message) {
  if (Message* const asked = table_.find(message->key, true)) {
    message->granted = asked->granted;
    message->order_count = asked->order_count;
    std::copy_n(asked->order, asked->order_count, message->order);
    table_.remove(asked);
    give_back(asked);
    table_.add(message);
    return answer(message);
  }
  table_.add(message);
  if (message->bytes <= kEagerBytes) eager_.push(message);
}

// The peer has asked for a message that is posted here.
void Connection::answer(Message* message) {
  if (message->queued) eager_.remove(message);
  message->asked = true;
  if (!message->left.start(message->bytes, message->order, message->order_count)) return no_memory();
  // Pieces of a pipeline come in their order, also if somebody waits for one: the others depend on
  // it. Only what the ask has named is urgent.
  message->is_whole = message->bytes > kEagerBytes && message->granted >= message->bytes;
  message->urgent_bytes = std::min<std::uint64_t>(
      {message->is_whole ? message->named_bytes : message->granted, message->bytes, kUrgentBytes});
  if (message->granted != 0 || message->bytes == 0) queue_to_send(message);
}

void Connection::post_recv(Message* message) {
  EagerSlot* const slot = find_slot(message->key);
  table_.add(message);
  if (slot == nullptr) {
    message->host = host_;
    if (!shared_.grants.add(message)) return no_memory();
    return asks_.push(message);
  }
  message->asked = true;  // all of it comes unasked
  if (slot->complete)
    deliver(*slot, message);
  else
    slot->waiting = message;
}

EagerSlot* Connection::find_slot(const Key& key) {
  for (EagerSlot& slot : slots_) {
    if (slot.used && slot.key == key) return &slot;
  }
  return nullptr;
}

void Connection::free_slot(EagerSlot& slot) {
  slot.used = false;
  slot.waiting = nullptr;
  acks_.push(slot.key);
}

// An eager message has come, and so has its receive.
void Connection::deliver(EagerSlot& slot, Message* message) {
  const std::uint32_t bytes = slot.bytes;
  if (bytes > message->bytes) {
    free_slot(slot);
    return refuse_longer(message);
  }
  for (std::uint64_t at = 0, together; at < bytes; at += together) {
    together = bytes - at;
    char* const place = message->place(at, &together);
    std::memcpy(place, slot.data + at, together);
  }
  free_slot(slot);
  take_out(message);
  message->total.store(bytes, std::memory_order_relaxed);
  message->arrived_bytes.store(bytes, std::memory_order_relaxed);
  if (message->listener.arrived != nullptr && bytes != 0)
    message->listener.arrived(message->listener.context, message, 0, bytes);
  finish(message, Status::ok);
}

// The peer sends more than this rank wants: the ends have lost step.
void Connection::refuse_longer(Message* message) {
  const std::uint64_t comm = message->key.comm;
  take_out(message);
  finish(message, Status::truncated);
  abandon(comm, {Status::peer_failed, -1});
}

void Connection::hurry(const Key& key, const Range& range) {
  Message* const message = table_.find(key, false);
  if (message == nullptr || !message->posted) return;
  message->hurried = range;
  if (!message->asked) {
    message->order_count = std::min(message->order_count + 1, kMostRanges);
    std::copy_backward(message->order, message->order + message->order_count - 1,
                       message->order + message->order_count);
    message->order[0] = range;
    return;
  }
  message->urgent = range;
  shared_.grants.hurry(message);
  if (!message->queued) asks_.push(message);
}

// More of a receive may come.
void Connection::tell_grant(Message* message) {
  if (!message->queued) asks_.push(message);
}

// ---- communicators that have failed ----

const Connection::Failed* Connection::failure_of(std::uint64_t comm) const {
  const Failed* const found =
      std::find_if(failed_.begin(), failed_.end(), [&](const Failed& failed) { return failed.comm == comm; });
  return found != failed_.end() ? found : nullptr;
}

void Connection::add_failure(std::uint64_t comm, const Reason& reason, bool told) {
  if (stage_ == Stage::lost || failure_of(comm) != nullptr) return;
  if (!failed_.push({comm, reason, told})) return no_memory();
  failures_due_ = failures_due_ || !told;
  drop(comm, reason.why, {reason.lost, told ? peer_ : shared_.rank});
}

void Connection::abandon(std::uint64_t comm, const Reason& reason) { add_failure(comm, reason, false); }

// What is left of it, an ask or an eager message, is of calls that have failed. More may come.
void Connection::forget(std::uint64_t comm) {
  bool any = std::any_of(std::begin(slots_), std::end(slots_),
                         [&](const EagerSlot& slot) { return slot.used && slot.key.comm == comm; });
  table_.each([&](const Message* message) { any = any || message->key.comm == comm; });
  if (any) abandon(comm, {Status::peer_gone, -1});
}

void Connection::drop(std::uint64_t comm, Status why, const Lost& lost) {
  for (Track* const track : both_) {
    IncomingFrame& in = track->in;
    if (in.into == IncomingFrame::Into::message && in.message->key.comm == comm) in.into = IncomingFrame::Into::sink;
    if (track->out.message == nullptr || track->out.message->key.comm != comm) continue;
    detach(track->out);
    if (!is_open()) return;
    leave_frame(track->out, why, lost);
  }
  for (EagerSlot& slot : slots_) {
    if (!slot.used || slot.key.comm != comm) continue;
    slot.waiting = nullptr;
    if (slot.complete) free_slot(slot);
  }
  table_.each([&](Message* message) {
    if (message->key.comm != comm) return;
    take_out(message);
    if (message->posted)
      finish(message, why, lost);
    else
      give_back(message);
  });
}

}  // namespace stretto::transport::bulk
