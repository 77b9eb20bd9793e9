// SPDX-License-Identifier: BSD-3-Clause
// Frames that go. What is short and lets the peer go on goes first: failures, slots that are free,
// asks, acks, then eager messages, then pieces that somebody waits for. Other pieces have a
// track of their own.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/bulk/connection.hpp"

namespace stretto::transport::bulk {

bool Connection::step_out(Track& track) {
  OutgoingFrame& out = track.out;
  if (words_.has_ended || bulk_.has_ended) return false;
  if (const std::uint32_t bytes = shared_.grants.kept_bytes(); bytes != track.kept_bytes) {
    track.kept_bytes = bytes;
    if (shared_.buffer_bytes == 0) (void)sys::stream_keeps(track.stream, bytes);
  }
  for (std::uint64_t turn = 0; track.writable && turn < kTurnBytes;) {
    if (out.head_bytes == 0 && !(&track == &words_ ? next_word() : next_of_bulk())) return false;
    const sys::Piece pieces[] = {{out.head, out.head_bytes}, {out.payload, out.payload_bytes}};
    const std::uint64_t whole = out.head_bytes + out.payload_bytes;
    std::size_t sent = 0;
    const int error = sys::stream_send(track.stream, pieces, 2, out.gone, &sent);
    if (error != 0 && error != EAGAIN) {
      lose();
      return false;
    }
    out.gone += sent;
    turn += sent;
    track.writable = out.gone == whole;
    if (track.writable) frame_gone(out);
  }
  return track.writable;
}

bool Connection::next_word() {
  if (failures_due_ && next_failure()) return true;
  // An ack alone can wait. With other frames it costs nothing.
  if (frame_network()) return true;
  Message* const message = next_to_send();
  const bool others = !asks_.empty() || may_send_eagerly() || message != nullptr;
  if (acks_.count() >= kCredit / 2 || (acks_.count() != 0 && others)) {
    word(Kind::ack, acks_.pop(), 0, 0, 0);
    --eager_in_;
  } else if (!asks_.empty()) {
    frame_ask(asks_.first());
  } else if (may_send_eagerly()) {
    frame_eager(eager_.first());
  } else if (message != nullptr) {
    frame_data(words_, message);
  } else {
    return false;
  }
  return true;
}

// Of which data go, or are offered, by words. Null: of none.
Message* Connection::next_to_send() {
  if (!may_offer()) return urgent_.first();
  Message* const message = urgent_.empty() ? data_.first() : urgent_.first();
  return message != nullptr && shared_.reads.has_room() ? message : nullptr;
}

bool Connection::next_of_bulk() {
  if (!refused_.empty())
    frame_refused();
  else if (!may_offer() && !data_.empty())
    frame_data(bulk_, data_.first());
  else
    return false;
  return true;
}

MessageQueue& Connection::queue_of(const Message& message) {
  if (!message.sends) return asks_;
  if (!message.asked) return eager_;
  return message.urgent_bytes != 0 ? urgent_ : data_;
}

// A send that is asked for.
void Connection::queue_to_send(Message* message) {
  if (message->urgent_bytes != 0)
    urgent_.push(message);
  else
    data_.push_by_position(message);
}

void Connection::frame(OutgoingFrame& out, Kind kind, const Key& key, std::uint64_t offset, std::uint64_t bytes,
                       std::uint64_t total) {
  const Head head{kind, key, offset, bytes, total};
  head.write(out.head);
  out.head_bytes = Head::kBytes;
  out.payload = nullptr;
  out.payload_bytes = out.gone = 0;
  out.message = nullptr;
}

bool Connection::next_failure() {
  for (Failed& failed : failed_) {
    if (failed.told) continue;
    failed.told = true;
    word(Kind::fail, {failed.comm, 0, 0}, failed.reason.word(), 0, 0);
    return true;
  }
  failures_due_ = false;
  return false;
}

void Connection::frame_ask(Message* message) {
  asks_.remove(message);
  if (message->asked && message->urgent.bytes != 0) {
    const Range urgent = message->urgent;
    message->urgent = {};
    if (message->grant_due != 0) asks_.push_first(message);
    return word(Kind::hurry, message->key, urgent.offset, urgent.bytes, 0);
  }
  if (message->asked) {
    word(Kind::grant, message->key, 0, message->grant_due, 0);
    message->grant_due = 0;
    return;
  }
  message->asked = true;
  word(Kind::ask, message->key, message->granted, message->order_count, 0);
  message->grant_due = 0;
  write_ranges(message->order, message->order_count, words_.out.head + Head::kBytes);
  words_.out.head_bytes += static_cast<std::uint32_t>(message->order_count * sizeof(Range));
}

// The peer may ask for it all the same, until it has acked it.
void Connection::frame_eager(Message* message) {
  eager_.remove(message);
  table_.remove(message);
  gone_.push(message->key);
  word(Kind::eager, message->key, 0, message->bytes, message->bytes);
  words_.out.payload = message->data;
  words_.out.payload_bytes = message->bytes;
  words_.out.message = message;
  message->frames = 1;
  message->framed = true;
}

void Connection::frame_data(Track& track, Message* message) {
  MessageQueue& queue = queue_of(*message);
  queue.remove(message);
  std::uint64_t most = std::min((may_offer() ? 2 : 1) * track.kept_bytes, kPieceBytes);
  if (message->urgent_bytes != 0) most = std::min(most, message->urgent_bytes);
  const Range piece =
      message->left.empty() ? Range{} : message->left.take(std::min(message->granted - message->sent, most));
  message->sent += piece.bytes;
  message->urgent_bytes -= std::min(message->urgent_bytes, piece.bytes);
  if (may_offer() && piece.bytes != 0) {
    frame_offer(message, piece);
  } else {
    frame(track.out, Kind::data, message->key, piece.offset, piece.bytes, message->bytes);
    track.out.payload = message->data + piece.offset;
    track.out.payload_bytes = piece.bytes;
  }
  track.out.message = message;
  ++message->frames;
  message->framed = message->left.empty();
  if (message->framed)
    table_.remove(message);
  else if (message->sent != message->granted && &queue == &queue_of(*message))
    queue.push_first(message);
  else if (message->sent != message->granted)
    queue_to_send(message);
}

void Connection::frame_gone(OutgoingFrame& out) {
  out.head_bytes = 0;
  PrivateHeap::release(out.copy, out.payload_bytes);
  out.copy = nullptr;
  if (out.is_refused) shared_.reads.free(out.slot);
  out.is_refused = false;
  leave_frame(out, Status::ok);
}

// The frame needs its message no more.
void Connection::leave_frame(OutgoingFrame& out, Status status, const Lost& lost) {
  Message* const message = out.message;
  out.message = nullptr;
  if (message != nullptr && --message->frames == 0 && message->framed) finish(message, status, lost);
}

// Its message ends in the middle of a frame. The peer gets the rest of the frame from a copy, and
// then the reason.
void Connection::detach(OutgoingFrame& out) {
  if (out.payload_bytes == 0) return;
  out.copy = static_cast<char*>(PrivateHeap::take(out.payload_bytes));
  if (out.copy == nullptr) return no_memory();
  std::memcpy(out.copy, out.payload, out.payload_bytes);
  out.payload = out.copy;
}

}  // namespace stretto::transport::bulk
